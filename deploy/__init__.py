"""Configuration of a cluster, and a demo of a whole cluster on one machine."""
