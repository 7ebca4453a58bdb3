"""Convert source records to rows of their Parquet tables and to lines of JSON."""

import json
from collections.abc import Iterable

import polars as pl

from news_platform.datasets.source_records import (
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
    SourceRecord,
)


def record_document(record: SourceRecord) -> dict[str, object]:
    """Return a record as the specification's JSON object, without unknown fields."""
    provenance = {key: value for key, value in record.provenance.items() if value is not None}
    meta = {key: value for key, value in record.meta.items() if value is not None}
    if "fetched_at" in provenance:
        provenance["fetched_at"] = str(provenance["fetched_at"]).replace(" ", "T")
    return {"id": record.id, "text": record.text, "provenance": provenance, "meta": meta}


def record_json(record: SourceRecord) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(record_document(record), ensure_ascii=False)


def samples_json(samples: Iterable[SourceRecord]) -> bytes:
    """Return sample records as an indented JSON document, for people who check them."""
    documents = [record_document(record) for record in samples]
    return (json.dumps(documents, ensure_ascii=False, indent=1) + "\n").encode()


def record_rows(records: Iterable[SourceRecord]) -> pl.DataFrame:
    """Return records as rows of `source_records`."""
    rows = [_row(record) for record in records]
    return pl.DataFrame(rows, schema=dict(SOURCE_RECORDS.schema), orient="row")


def quarantine_rows(failures: Iterable[SourceRecord]) -> pl.DataFrame:
    """Return failed pages as rows of the quarantine."""
    rows = [
        (
            record.text,
            record.provenance.url,
            record.provenance.fetched_at,
            record.meta.snapshot,
            record.meta.error,
            record.meta.charset,
        )
        for record in failures
    ]
    return pl.DataFrame(rows, schema=dict(SOURCE_RECORDS_QUARANTINE.schema), orient="row")


def _row(record: SourceRecord) -> tuple[object, ...]:
    origin, meta = record.provenance, record.meta
    return (
        record.text,
        origin.section,
        origin.url,
        origin.fetched_at,
        meta.snapshot,
        meta.order,
        meta.kind,
        meta.language,
        meta.language_probability,
        meta.language_source,
        meta.charset,
        # Sorted, so that the same hints are always the same bytes.
        json.dumps(dict(meta.hints), ensure_ascii=False, sort_keys=True),
        record.id,
    )
