"""Stage crawl rows by hash bucket and merge them into a store that reads one domain at a time."""
