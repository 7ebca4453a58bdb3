"""Text analysis without I/O: language, hashes, normalization, words, days."""
