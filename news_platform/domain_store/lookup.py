"""Re-export the lookup, which lives in `news_platform.domain_store.reading.lookup`."""

from news_platform.domain_store.reading.lookup import DomainStore, read_rows_from_offset

__all__ = ["DomainStore", "read_rows_from_offset"]
