"""``lm-eval-rag reproduce``: one TOML file per table of a paper; our scores beside the published numbers."""
