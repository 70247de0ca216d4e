"""Reading runs, intervals and tests, and the tables of `lm-eval-rag report` and `lm-eval-rag rescore`."""
