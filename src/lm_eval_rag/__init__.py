"""Retrieval-augmented generation for the lm-evaluation-harness."""

import os.path

__version__ = "0.1.0"

if not os.path.isdir(os.path.join(__path__[0], "tasks")):  # a checkout without symlinks (Windows, zip archives)
    __path__.append(os.path.dirname(os.path.dirname(__path__[0])))
