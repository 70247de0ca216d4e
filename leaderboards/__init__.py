"""Published numbers, the tables that reproduce them, and the pages of what was run."""
