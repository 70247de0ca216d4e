"""RuleQA-demo: a seeded made-up world with planted rules of known confidence; needs no network."""
