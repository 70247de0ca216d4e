"""Publishing datasets and models, with their cards, to the Hugging Face Hub."""
