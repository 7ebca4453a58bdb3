"""Article extraction: the HTML of a news page to its text and metadata."""
