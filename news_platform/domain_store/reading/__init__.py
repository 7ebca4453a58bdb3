"""Read records by domain or by byte range."""
