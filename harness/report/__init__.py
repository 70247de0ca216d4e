"""Reads runs; computes intervals and tests; prints the tables of `lm-eval-rag report` and `lm-eval-rag rescore`."""
