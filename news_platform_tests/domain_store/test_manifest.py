"""What a generation consists of, to JSON and back."""

from datetime import date

import pytest

from news_platform.domain_store.manifest import (
    DataFile,
    Index,
    Manifest,
    Segment,
    parse_manifest,
)
from news_platform.errors import StorageError

INDEX = Index(
    path="domain_store/index/7/aa.jsonl",
    size_bytes=120,
    ranges_path="domain_store/index/7/aa.parquet",
    domains=2,
    records=5,
    bytes=99,
    fragments=3,
    sparse=(("a.org", 0), ('q"uote.org', 64)),
)
SEGMENT = Segment(
    name="0123456789ab",
    bucket=7,
    files=(DataFile("domain_store/data/7/0/part-0123456789ab-000001.jsonl.gz", 99),),
    listing="cdef01234567",
    dropped=("2025-11-01",),
    last_day=date(2025, 11, 2),
)
MANIFEST = Manifest(
    bucket=7,
    buckets=64,
    generation=3,
    index=INDEX,
    segments=(SEGMENT,),
    retired={"domain_store/data/7/0/part-old.jsonl.gz": 5},
)


def test_a_manifest_comes_back_as_it_was_written() -> None:
    assert parse_manifest(MANIFEST.to_json(), "CURRENT") == MANIFEST


@pytest.mark.parametrize(
    "body",
    [b"[]", b"\xff", MANIFEST.to_json()[:-5], b'{"format": 1}'],
    ids=["a list", "no text", "cut off", "too little"],
)
def test_what_is_no_manifest_is_named(body: bytes) -> None:
    with pytest.raises(StorageError, match="'CURRENT' is not a manifest"):
        parse_manifest(body, "CURRENT")


def test_a_manifest_of_another_format_is_refused() -> None:
    body = MANIFEST.to_json().replace(b'"format":1', b'"format":2')
    with pytest.raises(StorageError, match=r"^'CURRENT' has format 2, .* up to 1: update News"):
        parse_manifest(body, "CURRENT")


def test_a_manifest_names_every_file_it_needs() -> None:
    assert MANIFEST.paths == {
        "domain_store/data/7/0/part-0123456789ab-000001.jsonl.gz",
        "domain_store/batches/7/cdef01234567.json",
        "domain_store/entries/7/0123456789ab.parquet",
        "domain_store/records/7/0123456789ab.parquet",
        "domain_store/index/7/aa.jsonl",
        "domain_store/index/7/aa.parquet",
    }
    assert SEGMENT.size_bytes == 99
