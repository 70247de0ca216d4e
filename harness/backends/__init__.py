"""What serves the asks of methods: retrieval, rules, worked examples, generation."""
