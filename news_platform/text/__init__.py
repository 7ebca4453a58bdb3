"""Text analysis without I/O: language, hashes, normalization, shingles, days."""
