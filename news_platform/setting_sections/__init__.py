"""The sections of settings, each a class with typed fields."""
