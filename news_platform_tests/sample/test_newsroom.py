"""The articles of the world: enough of them, with copies, updates and twins, and no accidents."""

import re
import string
from itertools import combinations

import pytest

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import OUTLETS
from news_platform.sample.story import LANGUAGES, Phrasebook, phrasebook
from news_platform.text.normalize import jaccard, shingles

Articles = tuple[SampleArticle, ...]


def triples(article: SampleArticle) -> frozenset[str]:
    return shingles((article.earlier or article.story).text, 3)


def likeness(one: SampleArticle, other: SampleArticle) -> float:
    return jaccard(triples(one), triples(other))


def test_there_are_at_least_400_articles_by_12_outlets_in_6_languages(articles: Articles) -> None:
    assert len(articles) >= 400
    assert len({article.outlet.key for article in articles}) >= 12
    assert len({article.outlet.language for article in articles}) >= 6
    assert len({outlet.charset for outlet in OUTLETS}) >= 4


def test_copies_range_from_near_duplicates_to_short_versions(articles: Articles) -> None:
    originals = [a for a in articles if a.outlet.key in ("meridian", "kupfertal")]
    best = [
        max(likeness(copy, other) for other in originals if other.story.topic == copy.story.topic)
        for copy in articles
        if copy.kind == "copy"
    ]
    assert sum(found >= 0.8 for found in best) >= 12
    assert sum(0.3 < found < 0.8 for found in best) >= 5
    assert min(best) > 0.3


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_stories_that_are_not_copies_stay_well_below_near_duplicates(
    articles: Articles, language: str
) -> None:
    own = [
        (article.story.topic, triples(article))
        for article in articles
        if article.kind == "own" and article.outlet.language == language
    ]
    alike = [
        jaccard(a, b)
        for (topic, a), (other_topic, b) in combinations(own, 2)
        if topic == other_topic
    ]
    assert max(alike) < 0.65


SLOTS = {
    *("person", "other", "woman", "place", "town", "org", "team", "rival", "day"),
    *("n", "few", "pct", "money", "big"),
}


def templates(book: Phrasebook) -> list[str]:
    told = [text for plot in book.plots for text in (*plot.headlines, *plot.leads, *plot.beats)]
    return [*told, *book.general]


def test_every_language_is_complete_or_some_page_of_the_world_would_break() -> None:
    for language in LANGUAGES:
        book = phrasebook(language)
        assert book.labels.keys() == phrasebook("en").labels.keys()
        for template in templates(book):
            fields = {name for _, name, _, _ in string.Formatter().parse(template) if name}
            assert fields <= SLOTS, template
            assert re.sub(r"\[[^\[\]]*\|[^\[\]]*\]", "", template).count("[") == 0, template
