"""The marker of a collected WARC without rows, for tests to change by `dataclasses.replace`."""

from datetime import date

from news_platform.datasets.collected import Collected

MARKER = Collected(
    warc="a b.warc.gz",
    day=date(2025, 11, 1),
    source="file:///crawl/a b.warc.gz",
    source_etag="t",
    source_digest="d",
    source_bytes=1,
    rows=0,
    bytes=0,
    languages={},
    dropped={},
    captures=None,
    feed_candidates=0,
    extractor_version="1",
    attempt="a",
    collected_at="2025-11-03T20:00:00+00:00",
)
