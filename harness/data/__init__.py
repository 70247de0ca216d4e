"""Documents and pages as stored: corpora, page stores, upstream files, the one writer of built folders."""
