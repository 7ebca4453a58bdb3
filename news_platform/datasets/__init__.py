"""What lies in storage: row types, schemas and partition keys, one file per dataset."""
