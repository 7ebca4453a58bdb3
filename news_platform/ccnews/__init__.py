"""WARC files in, raw_news rows out."""
