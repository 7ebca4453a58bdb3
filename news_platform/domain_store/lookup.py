"""Re-export `DomainStore` and `read_rows_from_offset` under the path that notebooks import."""

from news_platform.domain_store.reading.lookup import DomainStore, read_rows_from_offset

__all__ = ["DomainStore", "read_rows_from_offset"]
