"""Published numbers, submissions, verification, ranking and the page."""
