"""Turn stored page snapshots into clean, ordered text blocks with their provenance."""
