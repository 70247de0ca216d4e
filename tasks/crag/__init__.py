"""CRAG (arXiv:2406.04744): questions with the web pages that a search returned, and knowledge graphs behind an API."""
