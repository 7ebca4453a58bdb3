"""The stored datasets: row types, schemas and partition keys."""
