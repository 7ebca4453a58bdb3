"""Find feeds and decide which of them to register."""
