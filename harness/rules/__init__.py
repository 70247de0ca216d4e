"""Length-1 rules: mining, and the bank that matches them to a query."""
