"""CRAG-demo: questions over pages, tables and a small knowledge graph of an invented world."""
