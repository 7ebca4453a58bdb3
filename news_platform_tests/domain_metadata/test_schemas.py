"""Public schemas: batches, file names, and the exported JSON Schemas."""

import json
import runpy
from datetime import UTC, date, datetime
from pathlib import Path

import jsonschema
import pytest

from news_platform.datasets.domain_metadata import (
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
    domain_folder,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import (
    PartitionInfo,
    is_raw_file,
    raw_file_number,
    seed_message,
)
from news_platform.errors import InputError

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
NOW = datetime(2025, 11, 3, tzinfo=UTC)


def schema(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize(
    "key",
    ["", "de", "de|media", "deu|media|2025-11-01", "de|../x|2025-11-01", "de|a|b|2025-11-01",
     "de|media|1730419200", "de|media|2025-11-01T00:00:00",
     "de|media|today", "de||2025-11-01", "de|media|2025-13-01", "d/|media|2025-11-01"],
)  # fmt: skip
def test_an_invalid_batch_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(InputError, match="invalid batch"):
        PartitionInfo.parse(key)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("raw_0001.json", 1),
        ("raw_12345.json", 12345),
        ("raw_20251101120000.json", 20251101120000),
        ("raw_001.json", 0),
        ("raw_metadata.json", 0),
        ("raw_0001.json.success", 0),
        ("raw_0001.JSON", 0),
        ("xraw_0001.json", 0),
    ],
)
def test_only_numbered_files_are_research_data(name: str, number: int) -> None:
    assert is_raw_file(name) is (number > 0) and raw_file_number(name) == number


def test_a_path_gives_its_batch() -> None:
    path = "raw/country=de/category=media/date=2025-11-01/raw_0001.json"
    seed = seed_message(path)
    assert seed is not None and seed.partition_info.key == "de|media|2025-11-01"
    assert seed_message(path.removesuffix(".json")) is None
    assert seed_message(path.removeprefix("raw/")) is None


@pytest.mark.parametrize(
    ("domain", "folder"),
    [
        ("BBC.co.uk", "bbc.co.uk"),
        ("a_b.test", "a_b.test"),
        ("::1", "__1"),
        ("..", "__"),
        (".", "_"),
        ("", "_"),
        ("../../etc", ".._.._etc"),
        ("a/b\\c\0", "a_b_c_"),
        ("münchen.de", "m_nchen.de"),
    ],
)
def test_a_domain_s_folder_stays_where_it_is_put(domain: str, folder: str) -> None:
    assert sanitized_domain(domain) == folder
    batch = PartitionInfo.of("de", "media", "2025-11-01")
    assert domain_folder(batch, domain) == f"prod/{batch.folder}/{folder}"


def test_the_exported_schemas_are_up_to_date() -> None:
    exported = runpy.run_path(str(SCHEMAS / "export.py"))["schemas"]()
    stored = {path.name: path.read_text() for path in SCHEMAS.glob("*.json")}
    assert stored == exported, "run `python docs/schemas/export.py`"


def test_facts_we_write_follow_their_schema() -> None:
    facts = DomainMetadata(
        domain_id="media:de:a.test",
        registrable_domain="a.test",
        country="de",
        category="media",
        date=date(2025, 11, 1),
        collected_at=NOW,
        outcome="ok",
        final=True,
        robots=RobotsFacts(host="a.test", url="https://a.test/robots.txt", fetched_at=NOW),
        sitemap=SitemapFacts(fetched_at=NOW),
        source=SourceFacts(domain_url="https://a.test/", authority="media"),
    )
    jsonschema.validate(json.loads(facts.model_dump_json()), schema("DomainMetadata"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"domain_id": 7}, schema("DomainMetadata"))


def test_the_sample_s_research_files_follow_their_schema(sample_world: Path) -> None:
    files = sorted((sample_world / "research").rglob("raw_0001.json"))
    assert files
    for path in files:
        jsonschema.validate(json.loads(path.read_text()), schema("EnhancedResearchDataset"))
