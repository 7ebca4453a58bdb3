"""Research files are what outsiders upload: a known shape, a few mistakes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from news_platform.sample.build import World
from news_platform.sample.research import research_files
from news_platform.sample.sites import Site

META = {
    *("dataset_id", "country", "category", "discovered_at"),
    *("research_methods", "queries", "engine", "record_count"),
}
RECORD = {
    *("raw_url", "normalized_domain", "domain_id", "source_type"),
    *("discovery_method", "confidence", "content_hints"),
}


def datasets() -> dict[str, dict[str, Any]]:
    files = research_files()
    return {
        path: json.loads(body)
        for path, body in files.items()
        if not path.endswith("raw_metadata.json")
    }


def test_paths_follow_the_partitions() -> None:
    pattern = r"country=[a-z]{2}/category=[a-z]+/date=2025-11-0[123]/raw_(\d{4}|metadata)\.json"
    assert all(re.fullmatch(pattern, path) for path in research_files())


def test_several_countries_and_categories_are_covered() -> None:
    metas = [dataset["meta"] for dataset in datasets().values()]
    assert len({meta["country"] for meta in metas}) >= 10
    assert {meta["category"] for meta in metas} == {"news", "sports", "education"}


def test_every_file_has_the_whole_meta_and_the_right_count() -> None:
    for path, dataset in datasets().items():
        meta = dataset["meta"]
        assert set(meta) == META
        assert meta["record_count"] == len(dataset["records"])
        assert f"country={meta['country']}/category={meta['category']}/" in path


def test_exactly_one_record_is_bad() -> None:
    records = [record for dataset in datasets().values() for record in dataset["records"]]
    bad = [record for record in records if set(record) != RECORD]
    assert len(records) >= 18
    assert len(bad) == 1
    assert bad[0]["raw_url"] == ""


def test_domain_ids_are_made_of_authority_country_and_domain() -> None:
    for dataset in datasets().values():
        for record in dataset["records"]:
            if "domain_id" in record:
                kind, country, domain = record["domain_id"].split(":")
                assert (kind, domain) == (record["source_type"], record["normalized_domain"])
                assert country == dataset["meta"]["country"]
                assert 0 < record["confidence"] <= 1


def test_every_researched_host_and_domain_can_be_reached(sites: Mapping[str, Site]) -> None:
    for dataset in datasets().values():
        for record in dataset["records"]:
            if record["raw_url"]:
                assert record["raw_url"].split("/")[2] in sites
                assert record["normalized_domain"] in sites


def test_one_batch_has_a_second_file_and_notes() -> None:
    batch = [path for path in research_files() if path.startswith("country=gb/category=news/")]
    assert [path.rpartition("/")[2] for path in sorted(batch)] == [
        "raw_0001.json",
        "raw_0002.json",
        "raw_metadata.json",
    ]


def test_the_world_holds_them_under_research(world: World) -> None:
    held = {path for path in world.files if path.startswith("research/")}
    assert held == {f"research/{path}" for path in research_files()}
