"""Read the store: lookups by domain and byte ranges."""
