"""Parsers of what a site states about crawling and AI use, and the verdict that follows."""
