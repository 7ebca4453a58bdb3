"""Lists of domains as people keep them in, research files out: plain text, CSV, ranks, OPML."""

import csv
import io

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.generated_research import research_file
from news_platform.domain_metadata.messages import is_domain
from news_platform.errors import InputError
from news_platform.html.decode import decode_html
from news_platform.web.opml import opml_sites
from news_platform.web.urls import registrable_domain

# Names of the column that holds the domain, in the order of preference.
_COLUMNS = ("domain", "registrable_domain", "normalized_domain", "host", "hostname", "url", "site")


def is_research_json(body: bytes) -> bool:
    """Return whether a file is JSON rather than a list."""
    return body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def list_as_research(
    body: bytes, batch: PartitionInfo, *, name: str, column: str | None = None
) -> bytes:
    """Return a research file with the domains of a list; raise InputError if it names none.

    Lines that are no domain stay in the file, so that queueing reports them with a reason.
    """
    found = list(dict.fromkeys(parse_domain_list(body, name=name, column=column)))
    if not any(is_domain(registrable_domain(one)) for one in found):
        cure = "expected one domain per line, a CSV with a column `domain`, or OPML"
        raise InputError(f"no domain in {name!r}: {cure}", thing=name)
    records = [
        {"raw_url": _as_url(one), "normalized_domain": registrable_domain(one) or one}
        for one in found
    ]
    return research_file(
        batch, records, dataset_id=f"list-{name}", method="list", engine="domains import"
    )


def parse_domain_list(body: bytes, *, name: str, column: str | None = None) -> list[str]:
    """Return the domains or addresses of a list, in its order."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return list(opml_sites(body))
    text = decode_html(body).text
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if column is None and not any("," in line or "\t" in line for line in lines[:100]):
        return [line.strip() for line in lines]
    return _csv_column(lines, name=name, column=column)


def _csv_column(lines: list[str], *, name: str, column: str | None) -> list[str]:
    delimiter = "\t" if lines and "\t" in lines[0] else ","
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


def _as_url(text: str) -> str:
    return text if text.lower().startswith(("http://", "https://")) else f"https://{text}/"
