"""Every language must be complete, or some page of the world would break."""

import re
import string

import pytest

from news_platform.sample.story import LANGUAGES, Phrasebook, phrasebook

SLOTS = {
    *("person", "other", "woman", "place", "town", "org", "team", "rival", "day"),
    *("n", "few", "pct", "money", "big"),
}


def templates(book: Phrasebook) -> list[str]:
    told = [text for plot in book.plots for text in (*plot.headlines, *plot.leads, *plot.beats)]
    return [*told, *book.general]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_labels_as_english(language: str) -> None:
    assert phrasebook(language).labels.keys() == phrasebook("en").labels.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_templates_use_known_slots_and_closed_brackets(language: str) -> None:
    for template in templates(phrasebook(language)):
        fields = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
        assert fields <= SLOTS, template
        assert re.sub(r"\[[^\[\]]*\|[^\[\]]*\]", "", template).count("[") == 0, template


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_many_enough_to_draw_pairs_and_seven_weekdays_are_named(language: str) -> None:
    book = phrasebook(language)
    assert len(book.weekdays) == len(set(book.weekdays)) == 7
    for kind in ("people", "places", "teams"):
        assert len(set(book.names[kind])) >= 5
    assert all(book.names[kind] for kind in ("women", "authors", "orgs"))
