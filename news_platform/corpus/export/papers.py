"""The manifest of an export in, the papers that its users owe out.

Croissant for machines, the parts of the EU's training summary that an export can fill, and the
fields of the Data Provenance Standards. All follow from the manifest and the declared columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from news_platform.corpus.export.card import LICENSE, ExportManifest
from news_platform.datasets.corpus import TRAINING_EXPORT

CROISSANT = "croissant.json"
SUMMARY = "training_summary.md"
CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
_RECORDS = "articles"
# The prefixes and names of the format, as its own examples have them.
_CONTEXT = "croissant_context.json"
_TYPES = ((pl.Int64, "sc:Integer"), (pl.Datetime, "sc:DateTime"), (pl.Float64, "sc:Float"))


def croissant(manifest: ExportManifest) -> Mapping[str, object]:
    """Return the description of the dataset in Croissant 1.1."""
    document = manifest.as_json()
    distribution = [
        {
            "@type": "cr:FileObject",
            "@id": shard.path,
            "name": shard.path,
            "contentUrl": shard.path,
            "encodingFormat": _encoding(shard.path),
            "sha256": shard.sha256,
        }
        for shard in manifest.shards
    ]
    return {
        "@context": json.loads(Path(__file__).with_name(_CONTEXT).read_text("utf-8")),
        "@type": "sc:Dataset",
        "name": "news_articles",
        "description": f"{manifest.rows} news articles, {document['command']}",
        "conformsTo": CONFORMS_TO,
        "license": LICENSE,
        "url": "https://commoncrawl.org/news-crawl",
        "datePublished": manifest.selection.days[-1],
        "version": "1.0.0",
        "citeAs": "Common Crawl CC-NEWS, and the publisher of each text (column url)",
        "isLiveDataset": False,
        "distribution": distribution,
        "recordSet": [
            _record_set(number, shard.path) for number, shard in enumerate(manifest.shards)
        ],
    }


def _encoding(path: str) -> str:
    return "application/x-parquet" if path.endswith(".parquet") else "application/jsonlines"


def _record_set(number: int, path: str) -> Mapping[str, object]:
    """Return the fields of a shard: one record set each, so that each names its file."""
    name = _RECORDS if number == 0 else f"{_RECORDS}_{number}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": column.description,
                "dataType": _data_type(column.name),
                "source": {"fileObject": {"@id": path}, "extract": {"column": column.name}},
            }
            for column in TRAINING_EXPORT.columns
            if column.name not in ("usage", "tokens")
        ],
    }


def _data_type(name: str) -> str:
    dtype = TRAINING_EXPORT.schema[name]
    return next((text for kind, text in _TYPES if dtype == kind), "sc:Text")


def croissant_bytes(manifest: ExportManifest) -> bytes:
    """Return croissant.json."""
    return (json.dumps(croissant(manifest), ensure_ascii=False, indent=1) + "\n").encode()


_BLANK = "_to be filled in by the provider of the model_"


def summary_text(manifest: ExportManifest, *, top: float = 0.1) -> str:
    """Return what the export can say in a summary of training content (AI Act, Art. 53(1)(d)).

    `top` is the share of domains that are listed, by the bytes of their texts.
    """
    return "\n".join(_summary_lines(manifest, top)) + "\n"


def _summary_lines(manifest: ExportManifest, top: float) -> Iterator[str]:
    days, languages = manifest.selection.days, manifest.languages
    shown = _largest(manifest.domain_bytes, top)
    yield "# Public summary of training content: the parts that this export can fill\n"
    yield "The duty to publish the summary is that of the provider of the general-purpose AI model;"
    yield "this page is not the summary. Fields in italics are the provider's own.\n"
    yield "## 1. General information\n"
    yield f"- Provider, model, date of placement on the market: {_BLANK}"
    yield f"- Modality: text; size: {manifest.rows:,} articles, {manifest.words:,} words"
    yield f"- Languages: {', '.join(name or 'unknown' for name in languages)}"
    yield f"- Period of collection: {days[0]} to {days[-1]}\n"
    yield "## 2. Data sources\n"
    crawl, feed = (manifest.sources.get(name, 0) for name in ("crawl", "feed"))
    yield f"- Publicly available datasets: CC-NEWS of Common Crawl, {crawl:,} articles"
    yield f"- Data scraped from online sources: pages named by publishers' feeds, {feed:,} articles"
    yield f"- Licensed, user and synthetic data: none in this export; {_BLANK}\n"
    yield f"The {len(shown):,} of {manifest.domains:,} domains with the most bytes of text:\n"
    yield "| domain | bytes of text |\n|---|---:|"
    yield from (f"| {name} | {size:,} |" for name, size in shown)
    yield "\n## 3. Data processing\n"
    rules = ", ".join(map(str, manifest.selection.rules)) or "no policy was applied"
    yield f"- Reservations of rights: {rules}; refusals at the fetch or later are left out"
    yield f"- Opt-out lists and takedowns: {_versions(manifest)}"
    yield f"- Removal of illegal content, further measures: {_BLANK}"


def _largest(sizes: Mapping[str, int], top: float) -> Sequence[tuple[str, int]]:
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return ordered[: max(1, round(len(ordered) * top))]


def _versions(manifest: ExportManifest) -> str:
    lists = ", ".join(f"{name} version {number}" for name, number in manifest.lists)
    return f"{lists or 'no lists'}; takedowns {manifest.takedowns or 'none'}"


def provenance_lines(manifest: ExportManifest) -> Iterator[str]:
    """Yield the 22 fields of the Data Provenance Standards as a table of the card."""
    days, rules = manifest.selection.days, ", ".join(map(str, manifest.selection.rules))
    unknown = "not stated by the exporter"
    fields = {
        "Standards version": "1.0.0",
        "Dataset title or name": "News articles",
        "Unique metadata identifier": "SHA-256 of manifest.json",
        "Metadata location": "manifest.json",
        "Dataset issuer": unknown,
        "Description": f"{manifest.rows:,} news articles, each text once",
        "Source (if different from issuer)": "publishers of the texts, column url",
        "Source metadata": "warc, record_offset, record_length, payload_digest of each row",
        "Data origin geography": "worldwide",
        "Dataset issue date": unknown,
        "Date of previously issued version": ", ".join(sorted(manifest.excepted)) or "none",
        "Range of dates for data generation": f"{days[0]} to {days[-1]}",
        "Method": "web crawl (CC-NEWS) and feeds of publishers",
        "Data format": manifest.file_format,
        "Confidentiality classification": "public web pages",
        "Consent documentation location": "statements.jsonl",
        "Privacy enhancing technologies": "none; texts are as published",
        "Data processing geography inclusion or exclusion": unknown,
        "Data storage geography inclusion or exclusion": unknown,
        "License to use": LICENSE,
        "Intended data use": rules or "no policy was applied",
        "Proprietary data presence": "texts belong to their publishers",
    }
    yield "| field | value |\n|---|---|"
    yield from (f"| {name} | {value} |" for name, value in fields.items())
