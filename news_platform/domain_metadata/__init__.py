"""Research files in, robots and sitemap facts of every domain out."""
