"""Stories read like news: whole sentences, one cast, consistent figures."""

import re
from datetime import date

import pytest

from news_platform.sample.outlets import Voice
from news_platform.sample.story import (
    LANGUAGES,
    Chance,
    Plot,
    Story,
    expand,
    phrasebook,
    write_story,
)

SATURDAY = date(2025, 11, 1)


def story_of(language: str, plot: Plot, *, name: object = 0) -> Story:
    chance = Chance("test", language, name)
    return write_story(phrasebook(language), plot, chance=chance, voice=Voice(), day=SATURDAY)


def test_alternatives_are_chosen_and_slots_filled() -> None:
    cast = {"place": "Dunmere"}
    text = expand("[A|B] in {place}: {n}", Chance(1), cast=cast, number=lambda slot: f"<{slot}>")
    assert text in ("A in Dunmere: <n>", "B in Dunmere: <n>")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_plot_of_a_language_can_be_told_without_leftovers(language: str) -> None:
    for plot in phrasebook(language).plots:
        story = story_of(language, plot)
        assert not re.search(r"[\[\]{}|]", story.headline + story.text)
        assert story.topic == plot.topic
        assert len(story.paragraphs) >= 4


@pytest.mark.parametrize("language", [lang for lang in LANGUAGES if lang != "ja"])
def test_a_story_has_the_length_of_an_article(language: str) -> None:
    for plot in phrasebook(language).plots:
        assert 120 <= len(story_of(language, plot).text.split()) <= 500


def test_a_japanese_story_has_the_length_of_an_article() -> None:
    for plot in phrasebook("ja").plots:
        assert 300 <= len(story_of("ja", plot).text) <= 1200


def test_headline_and_lead_name_the_same_sum() -> None:
    plot = Plot("economy", ("{money} million",), ("It cost {money} million.",), ("x {money}",) * 11)
    story = story_of("en", plot)
    assert story.lead == f"It cost {story.headline}."
    assert len(set(story.text.split("X ")[1:])) > 1


def test_the_day_of_the_week_is_the_day_it_was_told() -> None:
    plot = Plot("local", ("h",), ("It happened on {day}.",), ("beat",) * 11)
    assert story_of("en", plot).lead == "It happened on Saturday."
    assert story_of("de", plot).lead == "It happened on Samstag."


def test_remarks_about_decisions_stay_away_from_football() -> None:
    book = phrasebook("en")
    plot = Plot("sports", ("h",), ("lead",), tuple(f"Beat {n}." for n in range(12)))
    story = write_story(book, plot, chance=Chance(1), voice=Voice(), day=SATURDAY)
    assert all(word in ("lead", "Lead", "Beat") or word[0].isdigit() for word in story.text.split())


def test_beats_keep_the_order_in_which_they_were_written() -> None:
    plot = Plot("sports", ("h",), ("lead",), tuple(f"B{n:02d}." for n in range(14)))
    told = re.findall(r"B\d\d", story_of("en", plot).text)
    assert told == sorted(told)
    assert len(told) >= 9
