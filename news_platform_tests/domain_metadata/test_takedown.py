"""A domain that is taken down leaves its survey, and what the run's marker tells about it."""

import json

from news_platform.storage.commit.markers import read_markers, read_report, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.takedowns.asked import ask, served

BATCH = "prod/country=ma/category=news/date=2025-11-02"
KEY = "ma|news|2025-11-02"


def test_the_folder_and_the_marker_forget_the_domain(local_store: ObjectStore) -> None:
    for domain in ("gone.example", "stays.example"):
        local_store.put(f"{BATCH}/{domain}/robots.txt", b"")
    report = {"slowest": [["gone.example", 0.5], ["stays.example", 0.1]], "surveyed": 2}
    write_marker(local_store, "domain_metadata", KEY, inputs="x", report=report)
    before = read_markers(local_store, "domain_metadata")[KEY]
    ask(local_store, "domain", "gone.example")
    assert served(local_store).removed["domain_metadata"].rows == 1
    after = read_markers(local_store, "domain_metadata")[KEY]
    assert (after.inputs, after.path) == (before.inputs, before.path)
    assert read_report(local_store, after) == {"slowest": [["stays.example", 0.1]], "surveyed": 2}
    assert [info.path for info in local_store.list("prod")] == [f"{BATCH}/stays.example/robots.txt"]


def test_a_refused_record_leaves_the_quarantine_and_others_stay(local_store: ObjectStore) -> None:
    path = "quarantine/research/country=ma/category=news/date=2025-11-02/raw_0001.jsonl"
    records = [{"record": {"raw_url": f"https://{one}.example/"}} for one in ("gone", "stays")]
    local_store.put(path, b"".join(json.dumps(one).encode() + b"\n" for one in records))
    ask(local_store, "domain", "gone.example")
    assert served(local_store).removed["research_quarantine"].rows == 1
    assert [json.loads(line) for line in local_store.read(path).splitlines()] == records[1:]
