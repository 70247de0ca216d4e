"""What methods of several steps share: limits and abstentions, and readers of what a model wrote."""
