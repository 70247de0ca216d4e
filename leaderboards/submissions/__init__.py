"""Submissions: packed from runs of lm_eval, read as untrusted data, and scored again from their predictions."""
