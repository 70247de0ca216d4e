"""Generator checkpoints that ship with the package: one folder each, in Hugging Face form, with its card."""
