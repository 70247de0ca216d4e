"""Benchmarks as lm_eval tasks, one folder per benchmark."""
