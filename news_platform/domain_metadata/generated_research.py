"""Write research files: for domains new in the crawl, for a resurvey, or from a list of domains.

Domains that the crawl has newly seen go to batches `zz|ccnews|DAY`, one per day on which domains
were first seen. Domains to survey again go to a batch of a later day; the results of the earlier
survey stay, so that the policies of the two days can be compared.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.raw_files import (
    UNKNOWN_AUTHORITY,
    import_file,
    is_domain,
    iter_seeds,
    parse_records,
)
from news_platform.errors import InputError
from news_platform.html.decode import decode_html
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.opml import opml_sites
from news_platform.web.urls import registrable_domain

CATALOG_PATH = "domain_catalog/part-0.parquet"
# The crawl gives no country: `zz` is a code that ISO 3166 leaves to private use.
COUNTRY, CATEGORY = "zz", "ccnews"
# For the estimate: the budget of a survey, the files of a result, and a usual time of response.
_REQUESTS_PER_DOMAIN, _FILES_PER_DOMAIN, _SECONDS_PER_REQUEST = 8, 4, 0.5


@dataclass(frozen=True, slots=True)
class SeedReport:
    """How many domains were written to research files, and the paths of those files."""

    domains: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogEstimate:
    """What surveying the domains of the catalog would take, before any request is sent.

    `requests` and `files` are the most there can be; redirects and the children of sitemap indexes
    count apart. `hours` assumes half a second per request.
    """

    domains: int
    batches: int
    requests: int
    files: int
    hours: float


def estimate_catalog(
    catalog: pl.DataFrame, *, store: ObjectStore, per_day: int, concurrency: int
) -> CatalogEstimate:
    """Return what `seed_from_catalog` would write, and what its survey would take."""
    fresh = [len(found) for _, found in _fresh_domains(catalog, store=store, per_day=per_day)]
    domains = sum(fresh)
    requests = domains * _REQUESTS_PER_DOMAIN
    hours = requests * _SECONDS_PER_REQUEST / max(1, concurrency) / 3600
    return CatalogEstimate(
        domains, len(fresh), requests, domains * _FILES_PER_DOMAIN, round(hours, 2)
    )


def read_catalog(store: ObjectStore) -> pl.DataFrame:
    """Return the columns of the domain catalog that the survey needs."""
    body = io.BytesIO(store.read(CATALOG_PATH))
    return pl.read_parquet(body, columns=["domain", "records", "first_seen"])


def seed_from_catalog(catalog: pl.DataFrame, *, store: ObjectStore, per_day: int) -> SeedReport:
    """Write one research file per day whose new domains are not in a research file yet.

    `catalog` has the columns domain, records and first_seen. At most `per_day` domains per day are
    written, those with the most records first.
    """
    domains, files = 0, []
    for batch, fresh in _fresh_domains(catalog, store=store, per_day=per_day):
        domains += len(fresh)
        name = str(batch.date)
        files.append(import_file(store, batch, name=name, body=catalog_file(batch, fresh)))
    return SeedReport(domains, tuple(files))


def _fresh_domains(
    catalog: pl.DataFrame, *, store: ObjectStore, per_day: int
) -> Iterator[tuple[PartitionInfo, list[str]]]:
    """Yield the batches with domains that are not in a research file yet."""
    for day, found in newly_seen(catalog, per_day=per_day).items():
        batch = PartitionInfo.of(COUNTRY, CATEGORY, day)
        known = _known_domains(store, batch)
        fresh = [domain for domain in found if domain not in known][: max(0, per_day - len(known))]
        if fresh:
            yield batch, fresh


def newly_seen(catalog: pl.DataFrame, *, per_day: int) -> dict[str, list[str]]:
    """Return the domains first seen on each day, most records first."""
    ranked = catalog.drop_nulls("first_seen").sort(
        "first_seen", "records", "domain", descending=[False, True, False]
    )
    days = ranked.group_by("first_seen", maintain_order=True).agg(pl.col("domain").head(per_day))
    return {str(day): found for day, found in days.iter_rows()} if per_day > 0 else {}


def catalog_file(batch: PartitionInfo, domains: Sequence[str]) -> bytes:
    """Return a research file that lists domains of the catalog."""
    records = [
        {"raw_url": f"https://{domain}/", "normalized_domain": domain, "source_type": "media"}
        for domain in domains
    ]
    return research_file(batch, records, name=str(batch.date), method="crawl")


def write_resurvey_files(
    messages: Iterable[DomainQueueMessage], *, day: date, store: ObjectStore
) -> dict[str, str]:
    """Write one research file per batch of `day` that these domains belong to.

    Return the paths by batch key. Calling it twice writes one file. Raise InputError if a domain
    was researched on that day or later, because a survey must not be dated back.
    """
    repeated = list(messages)
    for message in repeated:
        earlier = message.partition_info
        if earlier.date >= day:
            raise InputError(
                f"cannot resurvey {message.registrable_domain!r} on {day}: "
                f"it is in a batch of {earlier.date}; choose a later day",
                thing=message.registrable_domain,
            )
    return write_due_files(repeated, day=day, store=store)


def write_due_files(
    messages: Iterable[DomainQueueMessage], *, day: date, store: ObjectStore
) -> dict[str, str]:
    """Write one research file per batch of `day`, whatever the days of the earlier surveys.

    A clock that was wrong may have dated an earlier survey into the future.
    """
    batches: dict[PartitionInfo, dict[str, DomainQueueMessage]] = {}
    for message in messages:
        earlier = message.partition_info
        batch = PartitionInfo.of(earlier.country, earlier.category, day)
        batches.setdefault(batch, {}).setdefault(message.registrable_domain, message)
    return {
        batch.key: import_file(
            store, batch, name=batch.key, body=resurvey_file(batch, list(found.values()))
        )
        for batch, found in batches.items()
    }


def resurvey_file(batch: PartitionInfo, messages: Sequence[DomainQueueMessage]) -> bytes:
    """Return a research file that lists the domains of these messages, sorted by name."""
    records = [
        {
            "raw_url": one.domain_url,
            "normalized_domain": one.registrable_domain,
            "source_type": one.authority if one.authority != UNKNOWN_AUTHORITY else None,
        }
        for one in sorted(messages, key=lambda message: message.registrable_domain)
    ]
    return research_file(batch, records, name=batch.key, method="resurvey")


def research_file(
    batch: PartitionInfo, records: Sequence[object], *, name: str, method: str
) -> bytes:
    """Return a research file: how its records were found, and the records."""
    meta = {
        "dataset_id": f"{method}-{name}",
        "country": batch.country,
        "category": batch.category,
        "discovered_at": str(batch.date),
        "research_methods": [method],
        "engine": "news-platform",
        "record_count": len(records),
    }
    found = [
        {**one, "discovery_method": method} if isinstance(one, dict) else one for one in records
    ]
    return json.dumps({"meta": meta, "records": found}, indent=1).encode()


def _known_domains(store: ObjectStore, batch: PartitionInfo) -> set[str]:
    seeds = iter_seeds(store, batch)
    return {one for seed in seeds for one in domains_of_file(store, seed.raw_file_path)}


def domains_of_file(store: ObjectStore, path: str) -> set[str]:
    """Return the domains that a research file of ours names."""
    records = _dicts(_records(store, path))
    return {str(one["normalized_domain"]) for one in records if "normalized_domain" in one}


def _records(store: ObjectStore, path: str) -> list[object]:
    """Return the records of a file; a broken file has none, and queueing it reports why."""
    try:
        return parse_records(store.read(path), path=path)
    except InputError:
        return []


# Names of the column that holds the domain, in the order of preference.
_COLUMNS_LIST = """
domain registrable_domain normalized_domain host hostname website homepage origin url raw_url site
"""
_COLUMNS = tuple(_COLUMNS_LIST.split())
_BOM_AND_BLANKS = b"\xef\xbb\xbf \t\r\n"


def is_research_json(body: bytes) -> bool:
    """Return whether a file is a research file rather than a list."""
    text = body.lstrip(_BOM_AND_BLANKS)
    return text.startswith(b"{") and not _is_json_lines(text)


def _is_json_lines(text: bytes) -> bool:
    """Return whether the first line is a JSON object that is not itself a research file."""
    try:
        first = json.loads(text.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "records" not in first


def list_as_research(
    body: bytes, batch: PartitionInfo, *, name: str, column: str | None = None
) -> bytes:
    """Return a research file with the domains of a list; raise InputError if it names none.

    Lines that are not a domain stay in the file, so that queueing reports them with a reason.
    """
    if body.lstrip(_BOM_AND_BLANKS).startswith((b"[", b"{")):
        records = [_json_record(row, column) for row in _json_rows(body, name=name)]
    else:
        found = dict.fromkeys(parse_domain_list(body, name=name, column=column))
        records = [_record(one) for one in found]
    named = (one.get("normalized_domain") or one.get("raw_url") for one in _dicts(records))
    if not any(is_domain(registrable_domain(str(one or ""))) for one in named):
        cure = "expected one domain per line, a CSV or JSON with a column `domain`, or OPML"
        raise InputError(f"no domain in {name!r}: {cure}", thing=name)
    return research_file(batch, records, name=name, method="list")


def _json_rows(body: bytes, *, name: str) -> list[object]:
    """Return the rows of a JSON array or of JSON lines."""
    text = decode_html(body).text.removeprefix("\ufeff")
    try:
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise InputError(f"invalid JSON in {name!r}: {error}", thing=name) from error
    return list(rows)


def _json_record(row: object, column: str | None) -> object:
    """Return the record of a row; one that names no domain stays as it is."""
    if isinstance(row, str):
        return _record(row)
    if not isinstance(row, dict) or (column is None and {"raw_url", "normalized_domain"} & {*row}):
        return row
    by_name = {key.lower(): value for key, value in row.items()}
    wanted = (column.lower(),) if column else _COLUMNS
    value = next((by_name[one] for one in wanted if by_name.get(one)), None)
    return {**row, **_record(str(value))} if value else row


def _record(text: str) -> dict[str, str | None]:
    is_url = text.lower().startswith(("http://", "https://"))
    return {
        "raw_url": text if is_url else f"https://{text}/",
        "normalized_domain": registrable_domain(text) or text,
    }


def _dicts(records: Iterable[object]) -> Iterator[dict[str, object]]:
    return (one for one in records if isinstance(one, dict))


def parse_domain_list(body: bytes, *, name: str, column: str | None = None) -> list[str]:
    """Return the domains or addresses of a list, in its order."""
    if body.lstrip(_BOM_AND_BLANKS).startswith(b"<"):
        return list(opml_sites(body))
    text = decode_html(body).text.removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if column is None and not any(mark in line for line in lines[:100] for mark in ",;\t"):
        return [line.strip().strip('"') for line in lines]
    return _csv_column(lines, name=name, column=column)


def _csv_column(lines: list[str], *, name: str, column: str | None) -> list[str]:
    first = lines[0] if lines else ""
    delimiter = "\t" if "\t" in first else max(",;", key=first.count)
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    wanted = column.lower() if column else next((one for one in _COLUMNS if one in header), None)
    if wanted is not None and wanted in header:
        place = header.index(wanted)
        return [row[place].strip() for row in rows[1:] if len(row) > place and row[place].strip()]
    if column is not None:
        known = ", ".join(header)
        raise InputError(f"no column {column!r} in {name!r}: it has {known}", thing=name)
    # A list of ranks, as Tranco publishes it, has no header: the rank, then the domain.
    if rows and rows[0][0].strip().isdigit() and len(rows[0]) > 1:
        return [row[1].strip() for row in rows if len(row) > 1]
    return [row[0].strip() for row in rows if row]
