"""Pure: research files as an outside pipeline uploads them: sites found for a country and class."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from news_platform.sample.chance import Chance
from news_platform.sample.dates import DAYS
from news_platform.sample.earlier import EARLIER_DAY, EARLIER_KEY
from news_platform.sample.institutions import institutions
from news_platform.sample.outlets import OUTLETS


@dataclass(frozen=True, slots=True)
class Found:
    """One site as the researchers met it."""

    url: str
    country: str
    category: str
    source_type: str
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What was looked for, and on which day."""

    country: str
    category: str
    day: date

    @property
    def folder(self) -> str:
        """Return the batch's place under the research folder."""
        return f"country={self.country}/category={self.category}/date={self.day.isoformat()}"


# Outsiders' files hold mistakes: this record has no address and too much confidence.
_BAD_RECORD: dict[str, object] = {
    "raw_url": "",
    "normalized_domain": None,
    "source_type": "media",
    "confidence": 1.7,
}


def research_files() -> dict[str, bytes]:
    """Return every research file by its path under the research folder."""
    files: dict[str, bytes] = {}
    for batch, found in _batches():
        records = [_record(site, rank) for rank, site in enumerate(found)]
        files[f"{batch.folder}/raw_0001.json"] = _dataset(batch, records, number=1)
        if batch.country == "gb" and batch.category == "news":
            # A second look finds one site again, under a deeper address.
            again = [{**records[0], "raw_url": f"{found[0].url}politics"}, _BAD_RECORD]
            files[f"{batch.folder}/raw_0002.json"] = _dataset(batch, again, number=2)
            files[f"{batch.folder}/raw_metadata.json"] = _notes(batch)
    return files


def _batches() -> Iterator[tuple[Batch, list[Found]]]:
    found = [*_outlets(), *_institutions()]
    keys = sorted({(site.country, site.category) for site in found})
    for number, (country, category) in enumerate(keys):
        sites = [site for site in found if (site.country, site.category) == (country, category)]
        yield Batch(country, category, DAYS[number % len(DAYS)]), sites
    outlet = next(outlet for outlet in OUTLETS if outlet.key == EARLIER_KEY)
    before = [site for site in found if site.url == f"{outlet.origin}/"]
    yield Batch(outlet.country, "news", EARLIER_DAY), before


def _outlets() -> Iterator[Found]:
    for outlet in OUTLETS:
        hints = (outlet.language, outlet.feed.kind)
        category = "sports" if outlet.key == "tidewater" else "news"
        yield Found(f"{outlet.origin}/", outlet.country, category, "media", hints)


def _institutions() -> Iterator[Found]:
    for institution in institutions():
        kind = "org" if "hospital" in institution.id else "edu"
        url = f"{institution.origin}{institution.pages[0].path}"
        yield Found(url, institution.country, "education", kind, ("departments",))


def _record(site: Found, rank: int) -> dict[str, object]:
    domain = _domain(site.url.split("/")[2])
    return {
        "raw_url": site.url,
        "normalized_domain": domain,
        "domain_id": f"{site.source_type}:{site.country}:{domain}",
        "source_type": site.source_type,
        "discovery_method": ("search", "directory", "link")[rank % 3],
        "confidence": Chance("confidence", site.url).number(60, 99) / 100,
        "content_hints": list(site.hints),
    }


def _domain(host: str) -> str:
    labels = host.split(".")
    return ".".join(labels[-3:] if labels[-2] == "co" else labels[-2:])


def _dataset(batch: Batch, records: Sequence[dict[str, object]], *, number: int) -> bytes:
    meta = {
        "dataset_id": f"{batch.country}-{batch.category}-{batch.day:%Y%m%d}-{number:04d}",
        "country": batch.country,
        "category": batch.category,
        "discovered_at": f"{batch.day.isoformat()}T06:30:00Z",
        "research_methods": ["search", "directory", "link"],
        "queries": [f"{batch.category} {batch.country}", f"daily {batch.category}"],
        "engine": "sample",
        "record_count": len(records),
    }
    return _json({"meta": meta, "records": records})


def _notes(batch: Batch) -> bytes:
    note = "The second file was made after a reader pointed out a missing address."
    return _json({"country": batch.country, "category": batch.category, "notes": note})


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
