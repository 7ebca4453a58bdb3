"""The articles of the world: enough of them, with copies, updates and twins, and no accidents."""

from collections import Counter
from itertools import combinations

import pytest

from news_platform.sample.newsroom import DAYS, WORLD_NOW, SampleArticle
from news_platform.sample.outlets import OUTLETS
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


def test_every_address_is_used_once(articles: Articles) -> None:
    assert [url for url, n in Counter(a.url for a in articles).items() if n > 1] == []


def test_all_was_published_in_the_three_days_and_before_now(articles: Articles) -> None:
    assert {article.published_at.date() for article in articles} == set(DAYS)
    assert all(article.published_at <= article.changed_at < WORLD_NOW for article in articles)


def test_each_outlet_publishes_on_each_day(articles: Articles) -> None:
    pairs = {(article.outlet.key, article.published_at.date()) for article in articles}
    assert len(pairs) == len(OUTLETS) * len(DAYS)


def test_copies_come_later_and_credit_the_agency(articles: Articles) -> None:
    copies = [article for article in articles if article.kind == "copy"]
    assert len(copies) >= 25
    for copy in copies:
        assert copy.author in ("Meridian Wire", "Kupfertaler Anzeiger")
        assert copy.author in copy.story.lead


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


@pytest.mark.parametrize("language", sorted({outlet.language for outlet in OUTLETS}))
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


def test_a_twin_has_the_text_of_its_sibling_under_a_second_address(articles: Articles) -> None:
    twins = [article for article in articles if article.kind == "twin"]
    assert len(twins) == 3
    for twin in twins:
        sibling = next(a for a in articles if f"/features{a.path}" == twin.path)
        assert twin.story == sibling.story


def test_updated_articles_keep_their_first_version(articles: Articles) -> None:
    updated = [article for article in articles if article.updated_at]
    assert len(updated) >= 10
    for article in updated:
        assert article.earlier is not None
        assert article.story.paragraphs[:-2] == article.earlier.paragraphs


def test_some_articles_link_to_older_ones_of_other_outlets(articles: Articles) -> None:
    by_url = {article.url: article for article in articles}
    linking = [article for article in articles if article.mentions]
    assert len(linking) >= 20
    for article in linking:
        assert article.mentions is not None
        assert by_url[article.mentions].published_at < article.published_at


def test_premium_articles_lie_behind_a_robots_rule(articles: Articles) -> None:
    premium = [article for article in articles if article.kind == "premium"]
    assert len(premium) == 3
    assert all(article.path.startswith("/premium/") for article in premium)


def test_addresses_are_ascii_and_of_four_styles(articles: Articles) -> None:
    assert all(article.path.isascii() and " " not in article.path for article in articles)
    assert any("?id=" in article.path for article in articles)
    assert any("%D0" in article.path for article in articles)
    assert any(article.path.endswith(".html") for article in articles)
    assert {outlet.link_style for outlet in OUTLETS} == {"dated", "numbered", "query", "native"}


def test_hosts_vary_and_all_end_in_example() -> None:
    hosts = [host for outlet in OUTLETS for host in outlet.hosts]
    assert len(hosts) == len(set(hosts))
    assert all(host.endswith(".example") for host in hosts)
    for start in ("www.", "news.", "xn--"):
        assert any(host.startswith(start) for host in hosts)
    assert any(".co.example" in host for host in hosts)
    idn = next(outlet for outlet in OUTLETS if outlet.host.startswith("xn--"))
    assert idn.host.encode().decode("idna") == "münsterecker.example"
