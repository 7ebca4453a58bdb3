"""What must not be stored or collected: requests for removal, and the matcher that all obey."""
