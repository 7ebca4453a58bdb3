"""The timeline of a story, why two articles are linked, and the commands that show both."""

from pathlib import Path

import polars as pl
import pytest

from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.stories.reading import explain_links, find_story, read_timeline, unknown_values
from news_platform.stories.timeline import sentences
from news_platform_tests.stories.events import (
    BRIDGE,
    BRIDGE_AGAIN,
    BRIDGE_LATER,
    CHESS,
    START,
    Events,
    day,
    hash_of,
)


@pytest.fixture
def events(local_store: ObjectStore, tmp_path: Path) -> Events:
    found = Events(local_store, tmp_path)
    found.add(0, {"first": BRIDGE, "copy": BRIDGE, "chess": CHESS})
    found.add(1, {"again": BRIDGE_AGAIN})
    found.add(2, {"later": BRIDGE_LATER})
    found.add(6, {"other": CHESS})
    found.settle()
    return found


def test_a_timeline_says_who_was_first_what_is_new_and_when_it_fell_silent(events: Events) -> None:
    found = read_timeline(events.store, hash_of("first"))
    assert [one.day for one in found.days] == [day(0), day(1), day(2)]
    assert (found.first.domain, found.first.clock, found.first.at) == (
        "first.example",
        "published",
        START,
    )
    assert found.copied == (("https://first.example/", ("copy.example",)),)
    assert found.silent_since == day(2)
    assert [one.title for one in found.headlines] == [BRIDGE[1], BRIDGE_AGAIN[1], BRIDGE_LATER[1]]
    # The third day names a firm and a sum; the second repeats what the first said.
    assert found.days[1].sentences == ()
    (news,) = found.days[2].sentences
    assert "Stavmost" in news.facts and "Stavmost" in news.text and news.domain == "later.example"


def test_an_address_is_no_sentence() -> None:
    address = "example.com/politics/2019/12/31/a-great-year-is-what-we-are-going-to-have/"
    assert sentences(f"{address}\nThe firm Stavmost paid 2.6 million for it.") == [
        "The firm Stavmost paid 2.6 million for it."
    ]


def test_a_story_is_found_by_the_beginning_of_its_id(events: Events) -> None:
    assert find_story(events.store, hash_of("first")[:12]) == hash_of("first")
    for wrong in ("0" * 12, "short", "../../etc"):
        with pytest.raises(InputError):
            find_story(events.store, wrong)


def test_a_filter_that_no_story_of_the_day_fits_names_the_known_values() -> None:
    days = {"languages": [["en", "de"], ["es"]], "domains": [["a.example"], ["meridian.example"]]}
    asked = unknown_values(pl.DataFrame(days), language="english", domains=["www.meridian.example"])
    assert list(asked) == [
        "no story of language 'english': expected one of de, en, es",
        "no story of outlet 'www.meridian.example': did you mean 'meridian.example'?",
    ]
    domains = ["a.example", "other.example"]
    assert not list(unknown_values(pl.DataFrame(days), language="de", domains=domains))
    assert not list(unknown_values(pl.DataFrame(days), language="", domains=()))


def test_a_link_is_explained_by_terms_numbers_and_time(events: Events) -> None:
    (found,) = explain_links(events.store, [day(1)], [hash_of("again")])
    score = events.members(1)["score"].to_list()[0]
    assert found.details["score"] == str(score)
    assert int(found.details["words"]) > 0
    assert found.details["linked_to"] == "https://first.example/"
    assert "kalderin" in found.text.lower()
    assert list(explain_links(events.store, [day(0)], [hash_of("first")])) == []
