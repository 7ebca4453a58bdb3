"""The Dagster shell: partitions, resources, automation, and one file of assets per feature."""
