"""`lm-eval-rag reproduce`: a paper's tables from one declarative file each, ours beside the published numbers."""
