"""Model checkpoints: finding them, downloading them, and reading the note that describes them."""
