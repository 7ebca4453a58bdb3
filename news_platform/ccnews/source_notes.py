"""Notes about WARCs whose source is broken or was published again.

`news/broken/WARC.json` counts equal failures of one version of a file (its size and ETag). After
enough of them, or once an operator accepts the file, what can be read of it is published.
`news/republished/DAY/WARC.json` says that the source is not what was collected any more: the WARC
counts as missing until it is collected again.
"""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from urllib.parse import quote, unquote

from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import Warc
from news_platform.storage.commit.markers import content_tag
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

BROKEN = "news/broken"
REPUBLISHED = "news/republished"
# The crawl's web server answers 503 when it is asked too much at once.
_CONCURRENT_HEADS = 4
_SHA256_HEX = 64


@dataclass(frozen=True, slots=True)
class BrokenNote:
    """How often one version of a WARC failed for the same reason, and whether it is accepted."""

    warc: str
    source_bytes: int
    source_etag: str
    reason: str = ""
    failures: int = 0
    accepted: bool = False

    def is_of(self, info: ObjectInfo) -> bool:
        """Return whether the note is about this version of the file."""
        return (self.source_bytes, self.source_etag) == (info.size_bytes, info.etag)

    def accepts(self, info: ObjectInfo, *, after: int) -> bool:
        """Return whether what can be read of this version counts, after so many failures."""
        return self.is_of(info) and (self.accepted or 0 < after <= self.failures)


def read_broken(root: ObjectStore) -> Mapping[str, BrokenNote]:
    """Return the notes about broken WARCs by name; one that cannot be parsed does not count."""
    found = (_parse_broken(root.read(info.path)) for info in root.list(BROKEN))
    return {note.warc: note for note in found if note}


def _parse_broken(body: bytes) -> BrokenNote | None:
    names = {field.name for field in fields(BrokenNote)}
    try:
        document = json.loads(body)
        return BrokenNote(**{key: value for key, value in document.items() if key in names})
    except (ValueError, TypeError, AttributeError):
        return None


def note_failure(
    root: ObjectStore, warc: str, *, info: ObjectInfo, reason: str, known: BrokenNote | None
) -> BrokenNote:
    """Count a failure of this version of a file; another version or reason starts at one."""
    fresh = BrokenNote(warc, info.size_bytes, info.etag, reason)
    is_same = known is not None and known.is_of(info) and known.reason in ("", reason)
    note = replace(known, reason=reason) if is_same and known else fresh
    return _write_broken(root, replace(note, failures=note.failures + 1))


def accept_broken(root: ObjectStore, warc: str, *, info: ObjectInfo) -> BrokenNote:
    """Accept this version of a WARC: its next run publishes what can be read of it."""
    known = read_broken(root).get(warc)
    is_same = known is not None and known.is_of(info)
    note = known if is_same and known else BrokenNote(warc, info.size_bytes, info.etag)
    return _write_broken(root, replace(note, accepted=True))


def _write_broken(root: ObjectStore, note: BrokenNote) -> BrokenNote:
    root.put(_broken_path(note.warc), json.dumps(asdict(note), indent=1).encode())
    return note


def forget_broken(root: ObjectStore, warc: str) -> None:
    """Delete the note about a WARC that was read to its end."""
    root.delete([_broken_path(warc)])


def _broken_path(warc: str) -> str:
    return f"{BROKEN}/{quote(warc, safe='')}.json"


@dataclass(frozen=True, slots=True)
class ChangedSource:
    """A collected WARC whose source has another size or ETag than when it was collected."""

    day: str
    warc: str
    collected_bytes: int
    source_bytes: int
    collected_etag: str
    source_etag: str


def find_changed_sources(
    crawl: ObjectStore, *, listed: Iterable[Warc], markers: Mapping[str, Collected]
) -> list[ChangedSource]:
    """Compare the collected WARCs among those listed with their sources, one HEAD each."""
    pairs = [(warc, markers[warc.name]) for warc in listed if warc.name in markers]
    with ThreadPoolExecutor(_CONCURRENT_HEADS) as threads:
        infos = list(threads.map(lambda pair: crawl.find(pair[0].path), pairs))
    return [
        ChangedSource(
            str(marker.day),
            marker.warc,
            marker.source_bytes,
            info.size_bytes,
            marker.source_etag,
            info.etag,
        )
        for (warc, marker), info in zip(pairs, infos, strict=True)
        if info is not None and _has_changed(crawl, warc.path, info, marker)
    ]


def _has_changed(crawl: ObjectStore, path: str, info: ObjectInfo, marker: Collected) -> bool:
    if info.size_bytes != marker.source_bytes:
        return True
    if crawl.local_folder is not None:
        return content_tag(crawl, path, info.etag) != marker.source_digest
    # Two stores may give different ETags to the same bytes.
    is_comparable = marker.source == crawl.uri(path) and marker.source_etag and info.etag
    return bool(is_comparable and marker.source_etag != info.etag)


def note_republished(root: ObjectStore, changed: Iterable[ChangedSource]) -> None:
    """Record that these WARCs are to be collected again."""
    for one in changed:
        body = json.dumps(asdict(one), indent=1).encode()
        root.put(_republished_path(one.day, one.warc), body)


def list_republished(root: ObjectStore) -> Mapping[str, frozenset[str]]:
    """Return the names of the WARCs that were published again, by day."""
    days: dict[str, set[str]] = {}
    for info in root.list(REPUBLISHED):
        day, _, name = info.path.removeprefix(f"{REPUBLISHED}/").partition("/")
        if name.endswith(".json"):
            days.setdefault(day, set()).add(unquote(name.removesuffix(".json")))
    return {day: frozenset(names) for day, names in days.items()}


def forget_republished(root: ObjectStore, *, day: date, warc: str) -> None:
    """Delete the note about a WARC that was collected again."""
    root.delete([_republished_path(str(day), warc)])


def _republished_path(day: str, warc: str) -> str:
    return f"{REPUBLISHED}/{day}/{quote(warc, safe='')}.json"
