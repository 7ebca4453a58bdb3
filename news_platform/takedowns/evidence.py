"""Pure: what counts as stored, and what merely mentions a page; collected over a whole root.

A finding is a row, record, key or file name of a covered page, or the text of a removed page under
its own address or under none. An address inside the text of another page, in a sitemap, in a
research file or in a request is a mention, and the text under another address is a copy.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from news_platform.storage.objects.interfaces import INCOMING
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.mentions import page_needles
from news_platform.takedowns.spellings import shown_spellings
from news_platform.web.urls import url_hash

if TYPE_CHECKING:
    from news_platform.takedowns.text_runs import RemovedTexts

# Fields that name the page, the host or the hash of a row, whatever dataset it is in.
URL_FIELDS = frozenset(
    ("uri", "url", "article_url", "article_url_canon", "sourceURL", "feed_url_canon")
)
DOMAIN_FIELDS = frozenset(("domain", "registrable_domain"))
HASH_FIELDS = frozenset(("url_hash", "document_id"))
# Inputs of others, the record of the requests itself, and the fictional outside.
MENTIONING = ("raw/", "takedowns/", "world/", "crawl-data/")
# Files that hold one page each and are named after it; the ledger knows its address.
_PAGE_FILES = ("articles/full_text/", "articles/pages/")
# More needles would make the search for mentions slower than reading.
_MOST_NEEDLES = 64


def _no_texts() -> "RemovedTexts":
    # It loads numpy, which most processes never need.
    from news_platform.takedowns.text_runs import RemovedTexts

    return RemovedTexts()


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """Something of a covered page that is stored: where, and what it is."""

    place: str
    what: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class VerifiedRoot:
    """What a verification read and found."""

    findings: tuple[StoredTrace, ...]
    mentioned: Mapping[str, int]
    copies: tuple[StoredTrace, ...]
    files: int
    bytes_read: int
    bytes_inflated: int
    rows: int


@dataclass(slots=True)
class StoredTraces:
    """Collects findings and mentions while files are read."""

    takedowns: Takedowns
    texts: "RemovedTexts" = field(default_factory=_no_texts)
    findings: dict[StoredTrace, None] = field(default_factory=dict)
    mentions: Counter[str] = field(default_factory=Counter)
    copies: dict[StoredTrace, None] = field(default_factory=dict)
    files: int = 0
    bytes_read: int = 0
    bytes_inflated: int = 0
    rows: int = 0
    needles: tuple[bytes, ...] = ()
    has_all_needles: bool = True
    hashes: frozenset[str] = frozenset()
    # Files with the text of a removed page, by the name that the ledger may have an address for.
    unnamed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, takedowns: Takedowns, texts: "RemovedTexts | None" = None) -> "StoredTraces":
        """Return empty evidence for these requests and removed texts."""
        needles = page_needles(takedowns)
        return cls(
            takedowns,
            texts if texts is not None else _no_texts(),
            needles=tuple(key.encode() for key in needles[:_MOST_NEEDLES]),
            has_all_needles=len(needles) <= _MOST_NEEDLES,
            hashes=frozenset(
                url_hash(one) for page in takedowns.pages for one in shown_spellings(page)
            ),
        )

    def result(self) -> VerifiedRoot:
        """Return what was found; the text of a removed page that nobody else has is a finding."""
        for place in self.unnamed.values():
            self.find(place, "text of a removed page, under no address")
        return VerifiedRoot(
            tuple(self.findings),
            dict(self.mentions),
            tuple(self.copies),
            self.files,
            self.bytes_read,
            self.bytes_inflated,
            self.rows,
        )

    def find(self, place: str, what: str) -> None:
        """Add a finding; the same place and thing count once."""
        self.findings[StoredTrace(place, what)] = None

    def check_name(self, path: str) -> None:
        """Look at the name of a file and its folders."""
        if path.startswith(MENTIONING):
            return
        for part in path.split("/"):
            stem = part.split(".")[0]
            if stem in self.hashes:
                self.find(path, f"file name {part!r}")
            elif "." in part and "=" not in part and self.takedowns.covers_domain(part):
                self.find(path, f"folder {part!r}")

    def check_field(self, place: str, name: str, value: object) -> None:
        """Look at the value of a field that may name a page."""
        if not isinstance(value, str) or not value:
            return
        if (
            (name in URL_FIELDS and self.takedowns.covers_url(value))
            or (name in DOMAIN_FIELDS and self.takedowns.covers_domain(value))
            or (name in HASH_FIELDS and value in self.hashes)
            or (name == "origin" and self.takedowns.covers_robots(value))
        ):
            self.find(place, f"{name} {value!r}")

    def check_json(self, place: str, document: object) -> None:
        """Look at every field of a JSON document, and at keys that are domains."""
        for name, value in _iter_fields(document):
            self.check_field(place, name, value)
            if "." in name and self.takedowns.covers_domain(name):
                self.find(place, f"key {name!r}")

    def mention(self, place: str, count: int = 1) -> None:
        """Add mentions of a covered page inside other content."""
        if count:
            self.mentions[place] += count

    def check_bytes(self, place: str, content: bytes) -> None:
        """Count the mentions in some content."""
        self.mention(place, sum(content.count(needle) for needle in self.needles))

    def may_name(self, content: bytes) -> bool:
        """Return False if no covered page is named; True may also mean that nobody looked."""
        return not self.has_all_needles or any(needle in content for needle in self.needles)

    def copy(self, place: str, url: str) -> None:
        """Add a page that has the text of a removed one under another address."""
        what = f"equal text under {url}" if url else "equal text"
        self.copies[StoredTrace(place, what, url)] = None

    def add_text(self, place: str, url: str) -> None:
        """Add a place that has the text of a removed page; `url` is empty if it names none."""
        if url and self.takedowns.covers_url(url):
            self.find(place, f"text of a removed page, under {url!r}")
        elif not url and place.startswith(_PAGE_FILES):
            self.unnamed[place.rpartition("/")[2].partition(".")[0]] = place
        elif not url and f"{INCOMING}/" in place:
            self.unnamed[place] = place
        else:
            self.copy(place, url)

    def name_page(self, name: str, url: str) -> None:
        """Say whose page a file holds, once the ledger is read."""
        if place := self.unnamed.pop(name, None):
            self.add_text(place, url)


def document_url(document: object) -> str:
    """Return the address of the page that a JSON document is about, or an empty text."""
    named = (str(value) for name, value in _iter_fields(document) if name in URL_FIELDS and value)
    return next(named, "")


def _iter_fields(document: object, name: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _iter_fields(value, str(key))
    elif isinstance(document, list):
        for value in document:
            yield from _iter_fields(value, name)
    else:
        yield name, document
