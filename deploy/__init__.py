"""The same code on a cluster: configuration, and a demo of it on one machine."""
