"""Stored data: corpora, page stores, upstream source files, and the one writer of built folders."""
