"""Stories over days: links across outlets and languages, copies, any order, and takedowns."""

from itertools import permutations
from pathlib import Path

import pytest

from news_platform.datasets.stories import COPY, FIRST, OWN_REPORT
from news_platform.near_duplicates import pipeline as near_duplicates
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.stories.pipeline import build_day
from news_platform.stories.reading import resolve_story
from news_platform_tests.stories.events import (
    BRIDGE,
    BRIDGE_AGAIN,
    BRIDGE_GERMAN,
    BRIDGE_LATER,
    CHESS,
    VINEYARD,
    Events,
    Written,
    day,
    hash_of,
)


@pytest.fixture
def events(local_store: ObjectStore, tmp_path: Path) -> Events:
    return Events(local_store, tmp_path)


def test_an_event_is_one_story_across_outlets_languages_and_days(events: Events) -> None:
    events.add(0, {"first": BRIDGE, "chess": CHESS, "again": BRIDGE_AGAIN, "wine": VINEYARD})
    events.add(1, {"german": BRIDGE_GERMAN})
    events.add(2, {"later": BRIDGE_LATER})
    events.settle()
    root = hash_of("first")
    first = events.members(0)
    assert dict(zip(first["url_hash"], first["story_id"], strict=True)) == {
        root: root,
        hash_of("again"): root,
        hash_of("chess"): hash_of("chess"),
        hash_of("wine"): hash_of("wine"),
    }
    assert events.members(1)["story_id"].to_list() == [root]
    assert events.members(2)["story_id"].to_list() == [root]
    assert events.members(2)["role"].to_list() == [OWN_REPORT]
    (row,) = events.stories(2).to_dicts()
    assert (row["articles"], row["reports"], row["outlets"]) == (4, 4, 4)
    assert row["languages"] == ["de", "en"]
    assert row["first_seen_at"] == first["seen_at"].min()
    assert {"Kalderin", "Ostrava"} <= set(row["names"])
    # Articles that stand alone are members, but no story.
    assert events.stories(0)["story_id"].to_list() == [root]


def test_the_report_counts_what_was_linked(events: Events) -> None:
    events.add(0, {"first": BRIDGE, "copy": BRIDGE, "again": BRIDGE_AGAIN, "chess": CHESS})
    near_duplicates.build_day(events.store, day(0), days=14)
    report = build_day(events.store, day(0))
    assert report is not None
    assert (report.articles, report.copies, report.linked, report.failed) == (4, 1, 1, 0)
    assert (report.stories, report.largest, report.changed_ids) == (1, 3, 0)


def test_copies_are_one_report(events: Events) -> None:
    events.add(0, {"first": BRIDGE, **{f"copy{number}": BRIDGE for number in range(12)}})
    events.add(1, {"own": BRIDGE_AGAIN, "late": BRIDGE})
    events.settle()
    (row,) = events.stories(0).to_dicts()
    assert (row["articles"], row["reports"], row["outlets"]) == (13, 1, 13)
    assert row["is_growing"] is False
    roles = dict(zip(events.members(0)["url_hash"], events.members(0)["role"], strict=True))
    assert roles.pop(hash_of("first")) == FIRST and set(roles.values()) == {COPY}
    (later,) = events.stories(1).to_dicts()
    assert (later["articles"], later["reports"]) == (15, 2)
    assert events.members(1)["linked_to"].unique().to_list() == [hash_of("first")]


_DAYS: dict[int, dict[str, Written]] = {
    0: {"first": BRIDGE, "chess": CHESS},
    2: {"again": BRIDGE_AGAIN, "wine": VINEYARD},
    15: {"later": BRIDGE_LATER},
    16: {"german": BRIDGE_GERMAN},
}


def test_days_in_any_order_give_the_same_tables(tmp_path: Path) -> None:
    found = []
    for order in [*permutations(_DAYS)][::5]:
        events = Events(open_store(str(tmp_path / "-".join(map(str, order)))), tmp_path)
        for number in order:
            events.add(number, _DAYS[number])
            events.settle()
        found.append(events.tables())
    assert all(one == found[0] for one in found[1:]) and len(found) == 5
    assert found[0]


def test_a_late_day_replaces_ids_and_says_so(events: Events) -> None:
    events.add(2, _DAYS[2])
    events.settle()
    old = hash_of("again")
    assert events.members(2)["story_id"].to_list()[0] == old
    events.add(0, _DAYS[0])
    events.settle()
    assert events.members(2)["story_id"].to_list()[0] == hash_of("first")
    assert resolve_story(events.store, old) == hash_of("first")
    events.build(2)
    assert events.stale() == set()


def test_a_day_that_is_built_again_is_the_same(events: Events) -> None:
    for number, written in _DAYS.items():
        events.add(number, written)
    events.settle()
    before = events.tables()
    for number in _DAYS:
        events.build(number)
    assert events.tables() == before and events.stale() == set()


def test_an_article_with_every_word_of_the_day_joins_nothing(events: Events) -> None:
    everything = " ".join(text for _, _, text in (BRIDGE, CHESS, VINEYARD, BRIDGE_LATER))
    names = " ".join(f"Name{number:05}" for number in range(10_000))
    hostile = ("en", "Everything", f"{names} {everything} {names}")
    mixed = ("en", "All the news of the day", everything)
    events.add(0, {"first": BRIDGE, "chess": CHESS, "wine": VINEYARD, "hostile": hostile})
    events.add(1, {"mixed": mixed, "again": BRIDGE_AGAIN})
    events.settle()
    stories = dict(zip(events.members(0)["url_hash"], events.members(0)["story_id"], strict=True))
    assert stories[hash_of("hostile")] == hash_of("hostile")
    later = dict(zip(events.members(1)["url_hash"], events.members(1)["linked_to"], strict=True))
    # It neither joins nor captures others.
    assert later[hash_of("again")] == hash_of("first")
