"""Training: rule-guided fine-tuning of retrievers and generators (RuleRAG, arXiv:2410.22353, section 3.2)."""
