"""The WARCs are shaped like CC-NEWS and hold what a news crawl holds."""

import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from news_platform.sample.crawl import LISTING, held_back, late_warc
from news_platform.sample.newsroom import DAYS, SampleArticle

World = Mapping[str, bytes]


def warcs(world: World) -> dict[str, bytes]:
    return {path: body for path, body in world.items() if path.endswith(".warc.gz")}


def records(body: bytes) -> Iterator[WarcRecord]:
    for record in ArchiveIterator(io.BytesIO(body)):
        record.freeze()
        yield record


def responses(world: World) -> Iterator[WarcRecord]:
    for body in warcs(world).values():
        yield from (r for r in records(body) if r.record_type == WarcRecordType.response)


def test_the_listing_names_two_warcs_a_day_and_one_foreign_line(world: World) -> None:
    lines = gzip.decompress(world[f"crawl/{LISTING}"]).decode().splitlines()
    assert [line for line in lines if not line.endswith(".warc.gz")] == [
        "crawl-data/CC-NEWS/2025/11/warc.paths.md5"
    ]
    listed = {f"crawl/{line}" for line in lines if line.endswith(".warc.gz")}
    assert listed == set(warcs(world))
    days = Counter(line.split("CC-NEWS-")[1][:8] for line in listed)
    assert days == {f"{day:%Y%m%d}": 2 for day in DAYS}


def test_digests_and_lengths_are_true(world: World) -> None:
    for response in responses(world):
        assert response.verify_payload_digest()
        assert int(response.http_headers["Content-Length"]) == len(response.reader.read())


def test_redirects_missing_pages_pictures_and_feeds_are_among_the_pages(world: World) -> None:
    statuses = Counter(str(r.http_headers.status_code) for r in responses(world))
    types = Counter(r.http_content_type for r in responses(world))
    assert statuses["301"] == 6
    assert statuses["404"] == 12
    assert statuses["200"] > 400
    assert types["text/html"] > 450
    assert types["image/png"] == 6
    assert sum(types[f"application/{kind}+xml"] for kind in ("rss", "atom", "rdf")) >= 4


def test_an_updated_article_is_seen_twice_with_different_content(
    world: World, articles: tuple[SampleArticle, ...]
) -> None:
    seen = defaultdict(set)
    for response in responses(world):
        uri = response.headers["WARC-Target-URI"]
        seen[uri].add(response.headers["WARC-Payload-Digest"])
    updated = [a for a in articles if a.updated_at and len(seen[a.url]) == 2]
    assert len(updated) >= 5
    unchanged = [a for a in articles if not a.updated_at]
    assert all(len(seen[article.url]) <= 1 for article in unchanged)


def test_a_late_warc_shows_pages_of_its_day_that_no_other_shows(
    world: World, articles: tuple[SampleArticle, ...]
) -> None:
    day = DAYS[0]
    path, body = late_warc(articles, day)
    seen = {r.headers["WARC-Target-URI"] for r in responses(world)}
    shown = [
        r.headers["WARC-Target-URI"]
        for r in records(body)
        if r.record_type == WarcRecordType.response
    ]
    assert sorted(shown) == sorted(article.url for article in held_back(articles, day))
    assert len(shown) == 8
    assert not seen & set(shown)
    assert f"CC-NEWS-{day:%Y%m%d}220419-" in path
