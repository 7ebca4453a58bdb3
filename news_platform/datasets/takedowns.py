"""The takedowns dataset: requests to remove a URL, a prefix or a domain; files are never changed.

`takedowns/requests/ID.json` is a request; `requests/NAME@VERSION.json` is a version of an opt-out
list, which counts until a newer one of its name is stored. Whatever happens to it later is a file
of its own: `searched/ID.json` once its places are found, `applied/ID.json` once nothing stored is
left, `withdrawn/ID.json` when the ban ends. `aliases/NAME.json` has further addresses of its pages,
and the files `pending/DATASET/PARTITION` say what is still to be rewritten.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeVar
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from news_platform.datasets import versions
from news_platform.datasets.dataset import TEXTS, Column, Dataset, Place, Role, Sensitivity
from news_platform.errors import StorageError, require_format

ROOT = "takedowns"
REQUESTS = f"{ROOT}/requests"
SEARCHED = f"{ROOT}/searched"
APPLIED = f"{ROOT}/applied"
WITHDRAWN = f"{ROOT}/withdrawn"
ALIASES = f"{ROOT}/aliases"
PENDING = f"{ROOT}/pending"
# Under this name every part of the platform counts what it refused.
TAKEN_DOWN = "taken_down"
FORMAT = 1
_ID_HEX = 16
T = TypeVar("T")


class TakedownKind(StrEnum):
    """What a request names: single pages, all URLs that begin alike, or a domain with its hosts.

    An opt-out list names all three; its prefixes end with `*`.
    """

    url = "url"
    prefix = "prefix"
    domain = "domain"
    list = "list"


class TakedownScope(StrEnum):
    """Whether a request removes stored data, bans future collection, both, or only exports."""

    stored = "stored"
    future = "future"
    both = "both"
    export = "export"


@dataclass(frozen=True, slots=True)
class TakedownRequest:
    """One request; `requested_by` is free text, `expires_at` None means for good."""

    id: str
    kind: TakedownKind
    values: tuple[str, ...]
    reason: str
    requested_at: datetime
    requested_by: str = ""
    scope: TakedownScope = TakedownScope.both
    expires_at: datetime | None = None
    format: Literal[1] = 1

    def to_json(self) -> bytes:
        """Return the request as JSON."""
        return _REQUEST.dump_json(self, indent=1)

    @property
    def list_version(self) -> tuple[str, int] | None:
        """Return the name and the version of an opt-out list; None for any other request."""
        return parse_list_id(self.id)

    def iter_entries(self) -> Iterator[tuple[TakedownKind, str]]:
        """Yield what it names, each value with its kind."""
        for value in self.values:
            if self.kind is not TakedownKind.list:
                yield self.kind, value
            elif value.endswith("*"):
                yield TakedownKind.prefix, value[:-1]
            else:
                yield TakedownKind.url if "://" in value else TakedownKind.domain, value


@dataclass(frozen=True, slots=True)
class TakedownAliases:
    """Further addresses of pages that are taken down, such as those that redirect to them."""

    urls: tuple[str, ...]
    found_at: datetime
    format: Literal[1] = 1

    def to_json(self) -> bytes:
        """Return the aliases as JSON."""
        return _ALIASES.dump_json(self, indent=1)

    @property
    def path(self) -> str:
        """Return their path, which follows from the addresses."""
        name = hashlib.sha256("\n".join(sorted(self.urls)).encode()).hexdigest()[:16]
        return f"{ALIASES}/{name}.json"


_REQUEST = TypeAdapter(TakedownRequest)
_ALIASES = TypeAdapter(TakedownAliases)


def takedown_id(kind: TakedownKind, values: tuple[str, ...], requested_at: datetime) -> str:
    """Return the id of a request: its day, and a hash of what it asks for and when."""
    text = "\n".join((kind, *sorted(values), requested_at.isoformat()))
    return f"{requested_at:%Y%m%d}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_HEX]}"


def list_id(name: str, version: int) -> str:
    """Return the id of a version of an opt-out list."""
    return f"{name}@{version}"


def parse_list_id(takedown: str) -> tuple[str, int] | None:
    """Return the name and version in the id of an opt-out list; None for another request."""
    name, _, version = takedown.partition("@")
    return (name, int(version)) if version.isdecimal() else None


def request_path(takedown: str) -> str:
    """Return the path of a request by its id."""
    return f"{REQUESTS}/{takedown}.json"


def pending_path(dataset: str, partition: str) -> str:
    """Return the empty file that says that a partition is still to be rewritten."""
    return f"{PENDING}/{dataset}/{quote(partition, safe='')}"


def pending_of(path: str) -> tuple[str, str]:
    """Return the dataset and partition of such a file."""
    dataset, _, partition = path.removeprefix(f"{PENDING}/").partition("/")
    return dataset, unquote(partition)


def parse_request(body: bytes, path: str) -> TakedownRequest:
    """Parse a request; raise StorageError if it is damaged or of a later format."""
    return _parsed(_REQUEST, body, path)


def parse_aliases(body: bytes, path: str) -> TakedownAliases:
    """Parse a file of aliases; raise StorageError if it is damaged or of a later format."""
    return _parsed(_ALIASES, body, path)


def _parsed(adapter: TypeAdapter[T], body: bytes, path: str) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            if one["loc"] == ("format",):
                require_format(one["input"], FORMAT, path=path)
        message = f"cannot read takedown {path!r}: restore it; until then nothing is collected"
        raise StorageError(message, thing=path) from error


TAKEDOWNS = Dataset(
    name="takedowns",
    group="takedowns",
    description="Requests to remove pages or domains, which every dataset obeys. A run removes "
    "what is stored of them, and finishes what an interrupted one left.",
    row="one request to remove pages or domains",
    place=Place("files", f"{REQUESTS}/{{id}}.json"),
    fingerprint="files",
    beside=(f"{ROOT}/{{file}}",),
    columns=(
        Column("id", Role.fact, "day and hash of the request, or name and version of a list"),
        Column("kind", Role.fact, "url, prefix, domain or list"),
        Column(
            "values",
            Role.links,
            "canonical URLs, prefixes or domains; in a list, prefixes end with `*`",
            TEXTS,
        ),
        Column("reason", Role.text, "why it was asked for"),
        Column("requested_at", Role.time, "when, UTC"),
        Column("requested_by", Role.people, "who asked, as free text"),
        Column("scope", Role.fact, "stored data, future collection, both, or exports only"),
        Column("expires_at", Role.time, "when it ends by itself; null for good"),
    ),
    version=versions.TAKEDOWNS,
    sensitivity=Sensitivity.work,
    cost="high",
    removal="never",
    page="takedown.md",
    freshness="changes only when somebody asks for a removal",
)
