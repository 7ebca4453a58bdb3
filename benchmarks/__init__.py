"""Speed, memory and quality, side by side with peers; `make bench` runs them all."""
