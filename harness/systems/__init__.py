"""RAG systems of others, seen from outside: a function of Python or an HTTP endpoint that answers questions."""
