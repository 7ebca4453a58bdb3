"""Research files and the earlier survey: a known shape, a few mistakes, sites that exist."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.sample.sites import Site

World = Mapping[str, bytes]
RECORD = {
    *("raw_url", "normalized_domain", "domain_id", "source_type"),
    *("discovery_method", "confidence", "content_hints"),
}
EARLIER = "country=ma/category=news/date=2025-11-01"
SURVEYED = f"surveyed/{EARLIER}/almarsa.example"


@pytest.fixture(scope="module")
def datasets(world: World) -> dict[str, dict[str, Any]]:
    return {
        path: json.loads(body)
        for path, body in world.items()
        if path.startswith("research/") and not path.endswith("raw_metadata.json")
    }


def test_one_record_is_bad_and_all_others_name_a_site_of_the_world(
    datasets: dict[str, dict[str, Any]], sites: Mapping[str, Site]
) -> None:
    records = [record for dataset in datasets.values() for record in dataset["records"]]
    bad = [record for record in records if set(record) != RECORD]
    assert [record["raw_url"] for record in bad] == [""]
    for record in records:
        if record["raw_url"]:
            assert record["raw_url"].split("/")[2] in sites
            assert record["normalized_domain"] in sites
            assert record["domain_id"].endswith(f":{record['normalized_domain']}")


def test_the_earlier_survey_is_finished_and_of_a_researched_domain(
    world: World, datasets: dict[str, dict[str, Any]]
) -> None:
    facts = DomainMetadata.model_validate_json(world[f"{SURVEYED}/domain_metadata.json"])
    assert facts.files == {"robots.txt": sha256(world[f"{SURVEYED}/robots.txt"]).hexdigest()}
    assert facts.final
    assert world[f"{SURVEYED}/domain_metadata.json.success"] == b""
    (record,) = datasets[f"research/{EARLIER}/raw_0001.json"]["records"]
    assert record["domain_id"] == facts.domain_id
