"""HTML pages: bytes to text, the document, and what a page states about itself."""
