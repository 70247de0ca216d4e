"""RuleQA: questions over five knowledge graphs, with the rules that lead to their answers (arXiv:2410.22353)."""
