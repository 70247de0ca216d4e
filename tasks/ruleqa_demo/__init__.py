"""RuleQA-demo: an invented world, generated from a seed, with planted rules of known confidence; needs no network."""
