"""``lm-eval-rag view``: runs as one HTML page, every question with all that led to its answer."""
