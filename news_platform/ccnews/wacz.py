"""Write a selection of captures as a WACZ: a web archive in one file, which browsers replay.

Its records are copied byte by byte from the crawl, in the order of the index.
"""

import gzip
import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from news_platform.ccnews.captures import REVISIT
from news_platform.ccnews.cdxj import BLOCK_LINES, cdx_fields, cdxj_line, gzip_block
from news_platform.ccnews.records import Capture, read_record
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore

_WARC = "selection.warc.gz"
_VERSION = "1.1.1"


@dataclass(frozen=True, slots=True)
class WaczReport:
    """What was written; `left_out` counts records that share a compressed block with others."""

    records: int
    pages: int
    left_out: int
    bytes: int


def write_wacz(
    captures: Iterable[Capture],
    target: Path,
    *,
    crawl: Sequence[ObjectStore],
    root: ObjectStore,
    title: str,
    now: datetime,
) -> WaczReport:
    """Copy the records of captures to a WACZ file; raise InputError if there are none."""
    beside = target.with_name(f"{target.name}.tmp")
    records: list[dict[str, str]] = []
    pages: list[Mapping[str, str]] = []
    left_out = offset = 0
    try:
        with _Package(beside) as package:
            with package.file(f"archive/{_WARC}") as warc:
                for row in captures:
                    stored = _copied(row, crawl, root)
                    if stored is None:
                        left_out += 1
                        continue
                    place = {"offset": str(offset), "length": str(len(stored))}
                    offset += len(stored)
                    records.append({**cdx_fields(row), **place, "filename": _WARC})
                    pages += [_page(row)] if _is_page(row) else []
                    warc.write(stored)
            if not records:
                raise InputError("no capture of the selection can be copied")
            _write_indexes(package, records)
            _write_pages(package, pages)
            package.close_with(title, now)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return WaczReport(len(records), len(pages), left_out, target.stat().st_size)


def _copied(row: Capture, crawl: Sequence[ObjectStore], root: ObjectStore) -> bytes | None:
    if row["warc_record_length"] is None:
        return None
    stored = read_record(row, crawl=crawl, root=root).stored
    # A record of an uncompressed WARC becomes a gzip member, like all others.
    return stored if stored.startswith(b"\x1f\x8b") else gzip.compress(stored, mtime=0)


def _is_page(row: Capture) -> bool:
    is_html = "html" in (row["content_mime_type"] or "")
    return row["fetch_status"] == 200 and is_html and row["content_mime_type"] != REVISIT


def _page(row: Capture) -> Mapping[str, str]:
    key = f"{row['url']} {row['warc_filename']} {row['warc_record_offset']}"
    moment = row["fetch_time"]
    stamp = f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else f"{row['date']}T00:00:00Z"
    return {
        "id": hashlib.sha256(key.encode()).hexdigest()[:22],
        "url": row["url"],
        "ts": stamp,
        "title": row["url"],
    }


def _write_indexes(package: "_Package", records: Sequence[Mapping[str, str]]) -> None:
    lines = sorted(map(cdxj_line, records))
    entries = ['!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']
    offset = 0
    with package.file("indexes/index.cdx.gz") as file:
        for start in range(0, len(lines), BLOCK_LINES):
            block = lines[start : start + BLOCK_LINES]
            body = gzip_block(block)
            place = {"offset": offset, "length": len(body)}
            offset += len(body)
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            first = " ".join(block[0].split(" ", 2)[:2])
            entries.append(f"{first} {json.dumps({**place, 'digest': digest})}\n")
            file.write(body)
    with package.file("indexes/index.idx") as file:
        file.write("".join(entries).encode())


def _write_pages(package: "_Package", pages: Iterable[Mapping[str, str]]) -> None:
    head = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    with package.file("pages/pages.jsonl") as file:
        for one in (head, *pages):
            file.write(json.dumps(one, ensure_ascii=False).encode() + b"\n")


class _Package:
    """A zip file whose entries are stored as they are, with the size and digest of each."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._path = path
        self._names: list[str] = []

    def __enter__(self) -> "_Package":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def file(self, name: str) -> IO[bytes]:
        """Open a new file of the package."""
        self._names.append(name)
        # The time of a file is part of the bytes: the same selection gives the same files.
        return self._zip.open(zipfile.ZipInfo(name), "w", force_zip64=True)

    def close_with(self, title: str, now: datetime) -> None:
        """Write what describes the package, and close it."""
        self._zip.close()
        with zipfile.ZipFile(self._path, "a", zipfile.ZIP_STORED) as package:
            document = {
                "profile": "data-package",
                "resources": [_resource(package, name) for name in self._names],
                "wacz_version": _VERSION,
                "title": title,
                "created": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "software": "news-platform",
            }
            body = json.dumps(document, indent=2).encode()
            package.writestr(zipfile.ZipInfo("datapackage.json"), body)
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            signed = json.dumps({"path": "datapackage.json", "hash": digest}, indent=2)
            package.writestr(zipfile.ZipInfo("datapackage-digest.json"), signed)


def _resource(package: zipfile.ZipFile, name: str) -> Mapping[str, object]:
    digest = hashlib.sha256()
    with package.open(name) as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return {
        "name": name.rpartition("/")[2].lower(),
        "path": name,
        "hash": f"sha256:{digest.hexdigest()}",
        "bytes": package.getinfo(name).file_size,
    }
