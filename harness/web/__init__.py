"""Web pages to references (Hybrid RAG, arXiv:2408.05141, section 4.1): text, tables, chunks, the best of them.

A page is hostile until it was read: see :mod:`lm_eval_rag.harness.web.reader` for how time and memory are bounded.
"""
