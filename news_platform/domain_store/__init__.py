"""Rows in; buckets, store and index out; all records of a domain in one range read."""
