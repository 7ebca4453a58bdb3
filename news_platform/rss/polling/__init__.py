"""Poll registered feeds for new articles."""
