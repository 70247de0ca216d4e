"""The Hugging Face Hub: what is published there, with its card, and what is fetched from there."""
