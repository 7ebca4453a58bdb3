"""The outlets of a root, `outlets.csv`, and the domains that a filter chooses from them.

The file has a column `domain` and any others, such as `name`, `country`, `language`, `kind` and
`owner`; several values of one cell are separated by `;`. Wherever a domain chooses articles,
`country=ES` stands for the domains of all outlets with this value, and `kind=daily,weekly` for
those with one of these.
"""

import csv
import io
from collections.abc import Iterable, Mapping

from news_platform.errors import InputError
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.text.readable import did_you_mean, plain_cell
from news_platform.web.urls import plain_host, registrable_domain

OUTLETS_FILE = "outlets.csv"
_DOMAIN = "domain"


def parse_outlets(body: bytes) -> tuple[Mapping[str, frozenset[str]], ...]:
    """Return the outlets of a file: the values of each column, casefolded, domains registrable.

    Raise InputError if the file has no column `domain`.
    """
    text = body.decode("utf-8-sig", errors="replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [name.strip().casefold() for name in reader.fieldnames or ()]
    if _DOMAIN not in names:
        raise InputError(f"{OUTLETS_FILE!r} has no column 'domain': expected domain,name,country,…")
    reader.fieldnames = names
    try:
        rows = [{name: _values(row.get(name)) for name in names} for row in reader]
    except csv.Error as error:
        message = f"cannot read line {reader.line_num} of {OUTLETS_FILE!r} as CSV: {error}"
        raise InputError(message) from error
    for row in rows:
        row[_DOMAIN] = frozenset(registrable_domain(plain_host(one)) for one in row[_DOMAIN])
    return tuple(row for row in rows if row[_DOMAIN])


def _values(cell: str | None) -> frozenset[str]:
    parts = (part.strip().casefold() for part in plain_cell(cell or "").split(";"))
    return frozenset(part for part in parts if part)


def with_outlets(store: ObjectStore, chosen: Iterable[str]) -> tuple[str, ...]:
    """Return domains with each filter, such as `country=ES`, replaced by those that it chooses.

    Raise InputError for a filter of a column or value that the root's file does not have.
    """
    given = tuple(chosen)
    if not any("=" in one for one in given):
        return given
    try:
        outlets = parse_outlets(store.read(OUTLETS_FILE))
    except NotFound as error:
        message = f"there is no {OUTLETS_FILE!r} in {store.url!r}: docs/rss.md shows one"
        raise InputError(message, thing=OUTLETS_FILE) from error
    found = (_chosen(outlets, one) if "=" in one else {one} for one in given)
    return tuple(dict.fromkeys(domain for domains in found for domain in sorted(domains)))


def _chosen(outlets: Iterable[Mapping[str, frozenset[str]]], given: str) -> set[str]:
    name, _, values = given.casefold().partition("=")
    column, wanted = name.strip(), _values(values.replace(",", ";"))
    known: set[str] = set()
    domains: set[str] = set()
    columns: set[str] = set()
    for outlet in outlets:
        columns |= outlet.keys()
        known |= outlet.get(column, frozenset())
        if wanted & outlet.get(column, frozenset()):
            domains |= outlet[_DOMAIN]
    if column not in columns:
        raise InputError(
            f"{OUTLETS_FILE!r} has no column {column!r}: {did_you_mean(column, columns)}"
        )
    for value in sorted(wanted - known) or ([] if wanted else [""]):
        cure = did_you_mean(value, known)
        raise InputError(f"no outlet has {column} {value!r}: {cure}", thing=given)
    return domains
