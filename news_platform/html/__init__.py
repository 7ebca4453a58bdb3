"""HTML pages: decoding, parsing, links, and the metadata that a page states."""
