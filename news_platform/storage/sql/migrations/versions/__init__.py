"""Revisions in order, each named by its number and pointing to its predecessor."""
