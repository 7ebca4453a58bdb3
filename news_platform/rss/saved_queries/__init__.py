"""Saved queries that notify: their file, their matches, and how the matches are delivered."""
