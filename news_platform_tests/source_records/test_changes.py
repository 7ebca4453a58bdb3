"""What changed between the snapshots of an institution's pages, and who is told."""

import json

import polars as pl

from news_platform.datasets.source_records import changes_path
from news_platform.source_records.changes import scan_changes, tell_changes
from news_platform.source_records.pipeline import RecordsReport, build_institution
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.servers.webhook import Webhook, serve_webhook
from news_platform_tests.source_records.test_pipeline import FOLDER, OPTIONS
from news_platform_tests.takedowns.asked import ask

STAFF = """<html><body><main><h1>Staff</h1><h2>Office</h2><ul>{}</ul></main></body></html>"""
ADA = "Ada Lovelace, head of the office, room 12, phone 030 1234567"


def put(store: ObjectStore, day: int, *entries: str, page: str = "staff") -> None:
    """Store a snapshot of a page of a day in October."""
    items = "".join(f"<li>{entry}</li>" for entry in entries)
    metadata = {"url": f"https://u1.edu/{page}", "cachedAt": f"2025-10-{day:02}T08:00:00Z"}
    document = {"data": {"rawHtml": STAFF.format(items), "metadata": metadata}}
    store.put(f"{FOLDER}/{page}-{day:02}.json", json.dumps(document).encode())


def build(store: ObjectStore) -> RecordsReport:
    return build_institution("u1", store=store, options=OPTIONS)


def rows(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    return frame.sort("change", "order").select("change", "before", "after").rows()


def test_blocks_are_added_removed_changed_or_the_same(local_store: ObjectStore) -> None:
    other, new = "Grace Hopper, compilers and languages", "Katherine Johnson, orbital mechanics"
    put(local_store, 1, ADA, other, "Opening hours: Monday 9:00 to 12:00")
    put(local_store, 2, "Opening hours: Monday 9:00 to 12:00", ADA.replace("12", "14"), new)
    report = build(local_store)
    found = scan_changes(local_store).collect()
    # What only moved is the same.
    assert rows(found) == [
        ("added", None, new),
        ("changed", ADA, ADA.replace("12", "14")),
        ("removed", other, None),
    ]
    assert set(found["section"]) == {"Staff > Office"} and set(found["institution"]) == {"u1"}
    assert set(found["snapshot"]) == {f"{FOLDER}/staff-02.json"}
    assert set(found["before_snapshot"]) == {f"{FOLDER}/staff-01.json"}
    assert report.changes == 3 and report.new_changes.is_empty()


def test_each_snapshot_is_compared_with_the_one_before_and_told_once(
    local_store: ObjectStore,
) -> None:
    put(local_store, 2, ADA)
    put(local_store, 9, ADA, page="contact")
    assert build(local_store).changes == 0
    put(local_store, 1, "Grace Hopper, compilers and languages")
    put(local_store, 3, ADA, "Katherine Johnson, orbital mechanics")
    local_store.put(f"{FOLDER}/staff-04.json", b'{"success": false, "error": "blocked"}')
    report = build(local_store)
    # The page of the first day came late: what it differs in is not new.
    assert report.changes == 3
    assert rows(report.new_changes) == [("added", None, "Katherine Johnson, orbital mechanics")]
    before = local_store.read(changes_path("u1"))
    again = build(local_store)
    assert again.new_changes.is_empty() and local_store.read(changes_path("u1")) == before


def test_what_is_taken_down_is_in_no_change(local_store: ObjectStore) -> None:
    for day, entry in ((1, ADA), (2, "Katherine Johnson, orbital mechanics")):
        put(local_store, day, entry)
        put(local_store, day, entry, page="contact")
    build(local_store)
    ask(local_store, "url", "https://u1.edu/contact")
    assert set(scan_changes(local_store).collect()["url"]) == {"https://u1.edu/staff"}
    assert build(local_store).changes == 2


def test_a_webhook_is_told_what_is_new_and_a_broken_one_harms_nothing(
    local_store: ObjectStore,
) -> None:
    put(local_store, 1, ADA)
    build(local_store)
    put(local_store, 2, ADA.replace("12", "14"))
    changes = build(local_store).new_changes
    with serve_webhook(Webhook(answers=[200, 500])) as receiver:
        assert tell_changes(changes, "u1", url=receiver.url, secret="s") is None
        assert tell_changes(changes.clear(), "u1", url=receiver.url, secret="s") is None
        assert tell_changes(changes, "u1", url=None, secret=None) is None
        (posted,) = receiver.bodies
        assert posted["text"] == "u1: blocks 1 changed on 1 pages"
        assert posted["changes"][0]["after"] == ADA.replace("12", "14")
        problem = tell_changes(changes, "u1", url=receiver.url, secret=None)
    assert problem == "the webhook did not accept the changes at u1: HTTP 500"
