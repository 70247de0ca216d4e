"""From web pages to text, tables and chunks (Hybrid RAG, arXiv:2408.05141, section 4.1).

Any page may be hostile: :mod:`lm_eval_rag.harness.web.reader` limits the time and memory of reading one.
"""
