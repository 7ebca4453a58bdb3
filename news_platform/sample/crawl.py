"""The crawl of the sample world: which pages were fetched when, as WARC files and a listing."""

import base64
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha1
from http import HTTPStatus
from urllib.parse import urlsplit

from news_platform.sample.newsroom import DAYS, SEED, SampleArticle
from news_platform.sample.outlets import (
    OUTLET_OF,
    OUTLETS,
    Outlet,
    SiteResponse,
    gzip_member,
    http_date,
)
from news_platform.sample.pages import missing_page
from news_platform.sample.sites import Site, page_of
from news_platform.sample.story import Chance

_AGENT = "CCBot/2.0 (https://commoncrawl.org/faq/)"
_WARCINFO = f"""\
software: StormCrawler 2.10 http://stormcrawler.net/
description: News crawl of the sample world
http-header-user-agent: {_AGENT}
format: WARC File Format 1.0
conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.0/
"""


@dataclass(frozen=True, slots=True)
class Capture:
    """One request of the crawler and its response."""

    url: str
    resource: SiteResponse
    at: datetime


def warc_bytes(name: str, captures: Sequence[Capture], *, started_at: datetime) -> bytes:
    """Return a WARC file: warcinfo, then request and response pairs, one gzip member per record."""
    body = _WARCINFO.replace("\n", "\r\n").encode()
    info = _record("warcinfo", body, name=name, at=started_at, extra=(("WARC-Filename", name),))
    return info + b"".join(_pair(capture, f"{name}/{n}") for n, capture in enumerate(captures))


def _pair(capture: Capture, name: str) -> bytes:
    answer = _record_id(f"{name}/response")
    shared = (("WARC-IP-Address", _address(capture)), ("WARC-Target-URI", capture.url))
    request = _record(
        "request",
        _request(capture),
        name=f"{name}/request",
        at=capture.at,
        extra=(*shared, ("WARC-Concurrent-To", answer)),
    )
    block = _response(capture)
    digests = (
        ("WARC-Payload-Digest", _digest(capture.resource.body)),
        ("WARC-Block-Digest", _digest(block)),
    )
    return request + _record(
        "response", block, name=f"{name}/response", at=capture.at, extra=(*shared, *digests)
    )


def _record(
    kind: str, block: bytes, *, name: str, at: datetime, extra: Iterable[tuple[str, str]]
) -> bytes:
    types = {"warcinfo": "application/warc-fields"}
    fields = (
        ("WARC-Type", kind),
        ("WARC-Record-ID", _record_id(name)),
        ("WARC-Date", f"{at:%Y-%m-%dT%H:%M:%SZ}"),
        ("Content-Length", str(len(block))),
        ("Content-Type", types.get(kind, f"application/http; msgtype={kind}")),
        *extra,
    )
    head = "WARC/1.0\r\n" + "".join(f"{key}: {value}\r\n" for key, value in fields) + "\r\n"
    return gzip_member(head.encode() + block + b"\r\n\r\n")


def _request(capture: Capture) -> bytes:
    parts = urlsplit(capture.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return (
        f"GET {target} HTTP/1.1\r\nHost: {parts.hostname}\r\nUser-Agent: {_AGENT}\r\n"
        "Accept-Language: en-us,en-gb,en;q=0.7,*;q=0.3\r\n"
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        "Accept-Encoding: br,gzip\r\nConnection: Keep-Alive\r\n\r\n"
    ).encode()


def _response(capture: Capture) -> bytes:
    resource = capture.resource
    fields = [("Date", http_date(capture.at)), ("Content-Type", resource.content_type)]
    if resource.modified_at:
        fields.append(("Last-Modified", http_date(resource.modified_at)))
    if resource.location:
        fields.append(("Location", resource.location))
    if resource.gzipped:
        # The crawler stores the body decompressed and keeps the original header under this name.
        fields.append(("X-Crawl-Content-Encoding", "gzip"))
    fields.append(("Content-Length", str(len(resource.body))))
    phrase = HTTPStatus(resource.status).phrase
    head = f"HTTP/1.1 {resource.status} {phrase}\r\n"
    head += "".join(f"{key}: {value}\r\n" for key, value in fields)
    return f"{head}\r\n".encode() + resource.body


def _digest(body: bytes) -> str:
    return "sha1:" + base64.b32encode(sha1(body, usedforsecurity=False).digest()).decode()


def _record_id(name: str) -> str:
    return f"<urn:uuid:{uuid.UUID(bytes=Chance('record', name).octets(16), version=4)}>"


def _address(capture: Capture) -> str:
    """Return an IP address reserved for documentation, always the same one for a host."""
    chance = Chance("address", urlsplit(capture.url).hostname)
    return chance.pick(("192.0.2", "198.51.100", "203.0.113")) + f".{chance.number(1, 254)}"


FOLDER = "crawl-data/CC-NEWS/2025/11"
LISTING = f"{FOLDER}/warc.paths.gz"

_STARTS = (time(9, 12, 7), time(18, 33, 41))
_LATE_START = time(22, 4, 19)
_FIRST_SERIAL = 5011
_HELD_BACK_A_DAY = 8
_SEEN_AGAIN_PERCENT = 3

# Real listings contain lines that do not name a WARC file, so this one does too.
_FOREIGN_LINE = f"{FOLDER}/warc.paths.md5"


def crawl_warcs(articles: Sequence[SampleArticle], sites: Mapping[str, Site]) -> dict[str, bytes]:
    """Return the two WARC files of each day, by path."""
    met = _captures(articles)
    starts = [datetime.combine(day, at, tzinfo=UTC) for day in DAYS for at in _STARTS]
    return dict(
        _warc(start, _FIRST_SERIAL + at, met[start] + _oddities(sites, start))
        for at, start in enumerate(starts)
    )


def late_warc(articles: Sequence[SampleArticle], day: date) -> tuple[str, bytes]:
    """Return path and bytes of the third file of a day, which the crawler uploads later."""
    start = datetime.combine(day, _LATE_START, tzinfo=UTC)
    captures = [
        Capture(article.url, page_of(article, _of_outlet(articles, article)), start)
        for article in held_back(articles, day)
    ]
    return _warc(start, _FIRST_SERIAL + 100 + day.day, captures)


def listing(paths: Iterable[str]) -> bytes:
    """Return `warc.paths.gz` for these files, with one foreign line as in real listings."""
    lines = [*sorted(paths), _FOREIGN_LINE]
    return gzip_member("".join(f"{line}\n" for line in lines).encode())


def held_back(articles: Sequence[SampleArticle], day: date) -> list[SampleArticle]:
    """Return the articles of a day that only its late WARC contains."""
    own = [
        article
        for article in articles
        if article.outlet.crawled and article.kind == "own" and article.published_at.date() == day
    ]
    return Chance(SEED, "held back", day).in_order(own, _HELD_BACK_A_DAY)


def _captures(articles: Sequence[SampleArticle]) -> dict[datetime, list[Capture]]:
    late = {article.url for day in DAYS for article in held_back(articles, day)}
    met: dict[datetime, list[Capture]] = defaultdict(list)
    for article in articles:
        if not article.outlet.crawled or article.url in late:
            continue
        for start, version in _meetings(article):
            page = page_of(version, _of_outlet(articles, article))
            met[start].append(Capture(article.url, page, start))
    return met


def _meetings(article: SampleArticle) -> Iterable[tuple[datetime, SampleArticle]]:
    """Yield when an article is fetched and in which version: once, or again later."""
    first = _next_start(article.published_at)
    if first is None:
        return
    changed = article.updated_at and article.updated_at > first
    yield first, _first_version(article) if changed else article
    again = _next_start(article.updated_at if changed and article.updated_at else first)
    if again and (changed or Chance(SEED, "again", article.url).happens(_SEEN_AGAIN_PERCENT)):
        yield again, article


def _first_version(article: SampleArticle) -> SampleArticle:
    return replace(article, story=article.earlier or article.story, updated_at=None)


def _next_start(after: datetime) -> datetime | None:
    starts = (datetime.combine(day, at, tzinfo=UTC) for day in DAYS for at in _STARTS)
    return next((start for start in starts if start > after), None)


def _of_outlet(articles: Sequence[SampleArticle], article: SampleArticle) -> list[SampleArticle]:
    return [other for other in articles if other.outlet.key == article.outlet.key]


def _oddities(sites: Mapping[str, Site], start: datetime) -> list[Capture]:
    """Return what crawls also contain: front pages, redirects, errors, images, feeds, shells."""
    chance = Chance(SEED, "oddities", start)
    crawled = [outlet for outlet in OUTLETS if outlet.crawled]
    odd: list[Capture] = []
    for outlet in chance.sample(crawled, 6):
        odd.append(_of_site(sites, outlet, "/", start))
    for outlet in chance.sample(crawled, 2):
        gone = SiteResponse(
            missing_page(outlet), f"text/html; charset={outlet.charset}", status=404
        )
        odd.append(Capture(f"{outlet.origin}/{chance.number(1000, 9999)}.html", gone, start))
    for outlet, path in zip(chance.sample(crawled, 2), ("/logo.png", "/app"), strict=True):
        odd.append(_of_site(sites, outlet, path, start))
    outlet = chance.pick(crawled)
    odd.append(_of_site(sites, outlet, outlet.feed.path, start))
    odd.append(_redirect(sites, chance, start))
    return odd


def _redirect(sites: Mapping[str, Site], chance: Chance, start: datetime) -> Capture:
    outlet = OUTLET_OF["harbourhill"]
    old = sorted(path for path in sites[outlet.host] if path.startswith("/story/"))
    return _of_site(sites, outlet, chance.pick(old), start)


def _of_site(sites: Mapping[str, Site], outlet: Outlet, path: str, at: datetime) -> Capture:
    return Capture(outlet.origin + path, sites[outlet.host][path], at)


def _warc(start: datetime, serial: int, captures: list[Capture]) -> tuple[str, bytes]:
    name = f"CC-NEWS-{start:%Y%m%d%H%M%S}-{serial:05d}.warc.gz"
    chance = Chance(SEED, "order", name)
    shuffled = chance.sample(captures, len(captures))
    timed = [
        replace(capture, at=start + timedelta(seconds=4 * at + chance.number(0, 3)))
        for at, capture in enumerate(shuffled)
    ]
    return f"{FOLDER}/{name}", warc_bytes(name, timed, started_at=start)
