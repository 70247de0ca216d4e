"""Trained models: where they lie, what they say of themselves, downloading them."""
