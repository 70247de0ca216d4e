"""Rules: mining, and the bank that matches them to a query."""
