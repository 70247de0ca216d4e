"""RAG methods, one file each."""
