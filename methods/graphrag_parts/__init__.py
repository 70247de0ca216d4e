"""The parts of GraphRAG (arXiv:2404.16130): extraction, entity graph, communities, reports, local and global search."""
