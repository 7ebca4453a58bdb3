"""Two walks through the code, traced: a WARC record to `store get`, an article to its sheet row."""
