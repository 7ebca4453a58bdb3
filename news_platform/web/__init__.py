"""Web access: URLs, robots.txt rules, and one guarded, rate-limited fetcher."""
