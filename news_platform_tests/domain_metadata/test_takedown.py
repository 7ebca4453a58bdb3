"""A domain that is taken down leaves its survey, and what the run's marker tells about it."""

from news_platform.domain_metadata.takedown import delete_folders, find_folders
from news_platform.storage.commit.markers import read_markers, read_report, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform_tests.takedowns.asked import asked

BATCH = "prod/country=ma/category=news/date=2025-11-02"
KEY = "ma|news|2025-11-02"


def test_the_folder_and_the_marker_forget_the_domain(local_store: ObjectStore) -> None:
    for domain in ("gone.example", "stays.example"):
        local_store.put(f"{BATCH}/{domain}/robots.txt", b"")
    report = {"slowest": [["gone.example", 0.5], ["stays.example", 0.1]], "surveyed": 2}
    write_marker(local_store, "domain_metadata", KEY, inputs="x", report=report)
    before = read_markers(local_store, "domain_metadata")[KEY]
    down = Takedowns.of([asked("domain", "gone.example")])
    assert find_folders(local_store, down) == {BATCH: 1}
    assert delete_folders(local_store, BATCH, down).rows == 1
    after = read_markers(local_store, "domain_metadata")[KEY]
    assert (after.inputs, after.path) == (before.inputs, before.path)
    assert read_report(local_store, after) == {"slowest": [["stays.example", 0.1]], "surveyed": 2}
    assert [info.path for info in local_store.list("prod")] == [f"{BATCH}/stays.example/robots.txt"]
