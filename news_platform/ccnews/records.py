"""Read one archived record by its byte range from the crawl, and check that it is the right one.

A day of the crawl has 20 GB; a record has some 20 kB. Politeness is that of reading whole WARCs:
one request at a time, and at most one retry per second on the crawl's web server.
"""

import base64
import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from io import BytesIO
from typing import Any

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery
from news_platform.ccnews.captures import REVISIT
from news_platform.ccnews.page import CrawledPage, parse_head, plain_body, read_page
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import BrokenWarc, WarcResponse, iter_responses
from news_platform.errors import FetchError, StorageError
from news_platform.html.decode import decode_html
from news_platform.storage.commit.collected import find_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.build_filters import refuse_taken_down
from news_platform.takedowns.match import Takedowns

# Far above the longest page that is collected; a record is in memory once.
_MAX_BODY_BYTES = 256 << 20
# Of a record that shares a compressed block with others, so much of the file is searched.
_SHARED_BLOCK_BYTES = 64 << 20
_log = logging.getLogger(__name__)

Capture = Mapping[str, Any]
"""A row of captures, with the day of its WARC as `date`."""


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """A record of the crawl and its stored bytes.

    `is_verified` is False if the payload has another digest than the archiver stated.
    """

    stored: bytes
    response: WarcResponse
    is_verified: bool

    @property
    def page(self) -> bytes:
        """Return the payload without chunks and compression."""
        http = parse_head(self.response.head)
        return plain_body(self.response.body, http, max_bytes=_MAX_BODY_BYTES)

    @property
    def html(self) -> str:
        """Return the payload as text."""
        return decode_html(self.page, parse_head(self.response.head).charset).text


def find_capture(
    store: ObjectStore, url: str, at: datetime | None = None, *, files: CaptureFiles | None = None
) -> Capture | None:
    """Return the capture of a URL that is nearest to a moment, by default the newest.

    Captures with a page of their own come before redirects, errors and revisits.
    """
    query = CaptureQuery.parse(url, "exact")
    found = [
        row
        for rows in (files or CaptureFiles(store)).iter_days(query)
        for row in rows.iter_rows(named=True)
    ]

    def rank(row: Capture) -> tuple[bool, float]:
        moment = row["fetch_time"] or datetime.fromisoformat(f"{row['date']}T00:00:00+00:00")
        distance = abs((moment - at).total_seconds()) if at else -moment.timestamp()
        return row["fetch_status"] != 200 or row["content_mime_type"] == REVISIT, distance

    return min(found, key=rank, default=None)


def read_record(row: Capture, *, crawl: Sequence[ObjectStore], root: ObjectStore) -> ArchivedRecord:
    """Read the record of a capture from the first source that has it, and check its digest.

    Raise FetchError if it is taken down, StorageError if no source has the record.
    """
    refuse_taken_down(row["url"], Takedowns.read(root, use="removal"))
    errors: list[StorageError] = []
    for source, path in _places(row, crawl, root):
        try:
            return _read_from(source, path, row)
        except StorageError as error:
            errors.append(error)
    raise errors[0]


def iter_pages(
    captures: Iterable[Capture], *, crawl: Sequence[ObjectStore], root: ObjectStore
) -> Iterator[dict[str, object]]:
    """Read the pages of captures from the crawl as rows of raw_news, with `domain`, one by one.

    What is not a page, and pages that cannot be read any more, are left out.
    """
    for row in captures:
        if row["content_mime_type"] == REVISIT:
            continue
        with suppress(StorageError, FetchError):
            response = read_record(row, crawl=crawl, root=root).response
            page = read_page(response, CollectOptions())
            if isinstance(page, CrawledPage):
                yield {**_raw_news(page, row), "domain": row["url_host_registered_domain"]}


def _raw_news(page: CrawledPage, row: Capture) -> dict[str, object]:
    year, month, day = row["date"].split("-")
    return {
        "uri": page.record.uri,
        "tree": page.tree.decode(),
        "text": page.text,
        "main_lang": page.main_lang,
        "langs": page.langs,
        "confs": page.confs,
        "http_date": page.http.date,
        "http_last_modified": page.http.last_modified,
        "http_charset": page.http.charset,
        "surt_uri": page.surt_uri,
        "host": page.host,
        "filename": row["warc_filename"].rpartition("/")[2],
        "year": year,
        "month": month,
        "day": day,
        "warc_record_offset": row["warc_record_offset"],
        "fetch_status": page.http.status,
    }


def _places(
    row: Capture, crawl: Sequence[ObjectStore], root: ObjectStore
) -> Iterator[tuple[ObjectStore, str]]:
    """Yield where the WARC may be: in the crawl, and where it was collected from."""
    path = str(row["warc_filename"])
    yield from ((source, path) for source in crawl)
    name = path.rpartition("/")[2]
    with suppress(StorageError):
        marker = find_collected(root, day=date.fromisoformat(row["date"]), warc=name)
        folder = marker.source.rpartition("/")[0] if marker else ""
        # Of a crawl that was collected from a bucket, only the settings know how to reach it.
        if folder.startswith(("/", "file:", "https:")):
            yield open_store(folder), name


def _read_from(source: ObjectStore, path: str, row: Capture) -> ArchivedRecord:
    offset, length = row["warc_record_offset"], row["warc_record_length"]
    if length is None:
        length = min(_SHARED_BLOCK_BYTES, source.head(path).size_bytes - offset)
    stored = source.read_range(path, offset, length)
    try:
        found = _matching(stored, path, row)
    except BrokenWarc as error:
        raise _is_other(source, path, row) from error
    if found is None:
        raise _is_other(source, path, row)
    response, is_verified = found
    if not is_verified:
        _log.warning("%s: the payload has another digest than the archiver stated", row["url"])
    return ArchivedRecord(stored, response, is_verified)


def _matching(stored: bytes, path: str, row: Capture) -> tuple[WarcResponse, bool] | None:
    """Return the record of a capture in some bytes, and whether its payload has the digest."""
    wanted = row["content_digest"]
    for item in iter_responses(BytesIO(stored), warc_name=path, max_body_bytes=_MAX_BODY_BYTES):
        if isinstance(item, WarcResponse) and item.record.uri == row["url"]:
            if item.is_revisit or wanted is None:
                return item, True
            plain = plain_body(item.body, parse_head(item.head), max_bytes=_MAX_BODY_BYTES)
            if wanted in (_digest(item.body), _digest(plain)):
                return item, True
            if wanted == item.record.payload_digest:
                return item, False
    return None


def _digest(body: bytes) -> str:
    return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


def _is_other(source: ObjectStore, path: str, row: Capture) -> StorageError:
    place = f"{source.uri(path)}@{row['warc_record_offset']}+{row['warc_record_length']}"
    return StorageError(
        f"{place!r} is not the record with digest {row['content_digest']} that was indexed: the "
        "WARC was published again; collect or index its day again",
        thing=place,
    )
