"""A simulated year of the crawl: Dagster's own daemon code on a simulated clock, with trouble."""
