"""Pure: what counts as stored, and what merely mentions a page; collected over a whole root.

A finding is a row, record, key or file name of a covered page. An address inside the text of
another page, in a sitemap, in a research file or in a request is a mention.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.spellings import bare_key, page_keys, shown_spellings
from news_platform.web.urls import url_hash

# Fields that name the page, the host or the hash of a row, whatever dataset it is in.
URL_FIELDS = frozenset(
    ("uri", "url", "article_url", "article_url_canon", "sourceURL", "feed_url_canon", "origin")
)
DOMAIN_FIELDS = frozenset(("domain", "registrable_domain"))
HASH_FIELDS = frozenset(("url_hash", "document_id"))
# Inputs of others, the record of the requests itself, and the fictional outside.
MENTIONING = ("raw/", "takedowns/", "world/", "crawl-data/")
# More needles would make the search for mentions slower than reading.
_MOST_NEEDLES = 64


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
    text_hashes: frozenset[str] = frozenset()
    findings: dict[StoredTrace, None] = field(default_factory=dict)
    mentions: Counter[str] = field(default_factory=Counter)
    copies: dict[StoredTrace, None] = field(default_factory=dict)
    files: int = 0
    bytes_read: int = 0
    bytes_inflated: int = 0
    rows: int = 0
    needles: tuple[bytes, ...] = ()
    hashes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, takedowns: Takedowns, text_hashes: Iterable[str] = ()) -> "StoredTraces":
        """Return empty evidence for these requests."""
        keys = {page_keys(url)[0] for url in takedowns.pages}
        needles = sorted({*keys, *map(bare_key, takedowns.prefixes), *takedowns.domains})
        return cls(
            takedowns,
            frozenset(text_hashes),
            needles=tuple(key.encode() for key in needles[:_MOST_NEEDLES]),
            hashes=frozenset(
                url_hash(one) for page in takedowns.pages for one in shown_spellings(page)
            ),
        )

    def result(self) -> VerifiedRoot:
        """Return what was found."""
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
        is_page = name in URL_FIELDS and self.takedowns.covers_url(value)
        is_domain = name in DOMAIN_FIELDS and self.takedowns.covers_domain(value)
        if is_page or is_domain or (name in HASH_FIELDS and value in self.hashes):
            self.find(place, f"{name} {value!r}")

    def check_json(self, place: str, document: object) -> None:
        """Look at every field of a JSON document."""
        for name, value in _iter_fields(document):
            self.check_field(place, name, value)

    def mention(self, place: str, count: int = 1) -> None:
        """Add mentions of a covered page inside other content."""
        if count:
            self.mentions[place] += count

    def check_bytes(self, place: str, content: bytes) -> None:
        """Count the mentions in some content."""
        self.mention(place, sum(content.count(needle) for needle in self.needles))

    def copy(self, place: str, url: str) -> None:
        """Add a page that has the text of a removed one under another address."""
        self.copies[StoredTrace(place, f"equal text under {url}", url)] = None


def _iter_fields(document: object, name: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _iter_fields(value, str(key))
    elif isinstance(document, list):
        for value in document:
            yield from _iter_fields(value, name)
    else:
        yield name, document
