"""RuleQA (arXiv:2410.22353): questions over five knowledge graphs, with rules that lead to the answers."""
