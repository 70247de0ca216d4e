"""The parts of Self-RAG (arXiv:2310.11511): its prompts in words and in tokens, and the judgements of a segment."""
