"""Join settings with features, and the parts that features register for takedowns and explain."""
