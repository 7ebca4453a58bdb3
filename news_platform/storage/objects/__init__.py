"""Object stores: one interface over local folders, S3, GCS and HTTPS."""
