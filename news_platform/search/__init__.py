"""Full-text search over the articles of the crawl and of the feeds."""
