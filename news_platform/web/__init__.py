"""How the platform speaks to the web: URLs, robots rules, and one guarded, polite fetcher."""
