"""Exports of chosen articles: what to choose, and the formats that people use."""
