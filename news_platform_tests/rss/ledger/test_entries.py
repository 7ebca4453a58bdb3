"""Which entries of a feed are added to the ledger, and in which order."""

from datetime import UTC, datetime, timedelta

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import entries_by_url_hash
from news_platform.web.urls import url_hash

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)


def entry(link: str, published_at: datetime | None = None) -> FeedEntry:
    return FeedEntry(link, "T", published_at, "", "")


def test_entries_are_kept_once_per_web_address_newest_first() -> None:
    found = entries_by_url_hash(
        [
            entry("https://a.example/old", NOW - timedelta(days=1)),
            entry("https://a.example/undated"),
            entry("https://a.example/new?utm_medium=x", NOW),
            entry("https://a.example/new", NOW - timedelta(days=9)),
            entry("mailto:a@b.example"),
            entry(""),
        ]
    )
    urls = [f"https://a.example/{name}" for name in ("new", "old", "undated")]
    assert list(found) == [url_hash(url) for url in urls]
    assert found[url_hash(urls[0])].link == "https://a.example/new?utm_medium=x"
