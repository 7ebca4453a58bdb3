"""Reading articles: the rules on small pages, the floors on real ones."""

import gzip
import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.article_pages import fold, harmonic_mean, precision_recall
from news_platform.articles.article import Article
from news_platform.articles.extract import article_type, extract_article
from news_platform_tests.rss.web import SENTENCES, page

URL = "https://post.example/2025/bridge"
PROSE = "".join(f"<p>{sentence} {sentence}</p>" for sentence in SENTENCES)
TEXT = "\n".join(f"{sentence} {sentence}" for sentence in SENTENCES)


def test_a_page_gives_text_and_facts() -> None:
    article = extract_article(page("the bridge"), URL)
    assert article.title == "News of the bridge"
    assert article.authors == ("Ada Writer",)
    assert article.published_at == datetime(2025, 11, 3, 8, tzinfo=UTC)
    assert (article.section, article.language, article.article_type) == ("Local", "en", "news")
    assert article.clean_text.count("\n") == len(SENTENCES) - 1
    assert "Home" not in article.full_text
    assert article.full_text.startswith("News of the bridge")


@pytest.mark.parametrize("html", ["", "<!-- nothing -->", b"\x00\x01"])
def test_a_page_without_markup_is_an_empty_article(html: str | bytes) -> None:
    assert extract_article(html, URL).clean_text == ""


def test_text_and_bytes_give_the_same_article() -> None:
    html = page("the bridge")
    assert extract_article(html, URL) == extract_article(html.decode(), URL)


@pytest.mark.parametrize(
    "around",
    [
        pytest.param('<div class="newsletter-signup"><p>{junk}</p></div>', id="newsletter"),
        pytest.param('<div id="comments"><p>{junk}</p></div>', id="comments"),
        pytest.param('<div style="display: none"><p>{junk}</p></div>', id="hidden by style"),
        pytest.param("<figure><figcaption>{junk}</figcaption></figure>", id="caption"),
        pytest.param("<script>{junk}</script>", id="script"),
    ],
)
def test_boilerplate_stays_out_of_the_clean_text(around: str) -> None:
    junk = "Sign up for our letter and never miss what we have to say about this matter."
    html = f"<body><article><h1>T</h1>{PROSE}{around.format(junk=junk)}</article></body>"
    assert extract_article(html, URL).clean_text == TEXT


def test_an_article_in_alike_chunks_is_read_whole() -> None:
    chunks = "".join(f'<div class="chunk">{part}</div>' for part in (PROSE, PROSE, PROSE))
    related = f"<div class=related><p>{SENTENCES[0]}</p></div>"
    html = f"<body><main><div>{chunks}</div>{related}</main></body>"
    assert extract_article(html, URL).clean_text == "\n".join([TEXT] * 3)


def test_of_several_articles_on_one_page_the_first_is_read() -> None:
    second = "".join(f"<p>Another matter entirely. {sentence} </p>" * 3 for sentence in SENTENCES)
    html = (
        f"<body><main><article><h1>One</h1>{PROSE}</article>"
        f"<article><h1>Two</h1>{second}</article></main></body>"
    )
    assert extract_article(html, URL).clean_text == TEXT


def test_the_lead_between_headline_and_body_belongs_to_the_text() -> None:
    lead = "The council has decided, and the bridge will be repaired at last."
    html = (
        f'<body><header><h1>T</h1><p class="lead">{lead}</p></header>'
        f'<div class="article-body">{PROSE}</div></body>'
    )
    assert extract_article(html, URL).clean_text == f"{lead}\n{TEXT}"


@pytest.mark.parametrize(
    "line",
    [
        "Read more: what the mayor says",
        "The bridge in 2019 (Image: Getty)",
        "Published: 3 November 2025, 10:20",
        "LE PUEDE INTERESAR: La alcaldesa habla del puente",
        "延伸閱讀：市長談大橋",
        "We may earn a commission from links on this page. Why trust us?",
        "Wir verwenden Cookies, um Ihnen diese Seite zu zeigen.",
    ],
)
def test_pointers_credits_dates_and_notices_are_dropped(line: str) -> None:
    html = f"<body><article>{PROSE}<p>{line}</p>{PROSE}</article></body>"
    assert line not in extract_article(html, URL).clean_text


@pytest.mark.parametrize(
    "line",
    [
        "The agents earn a commission of three percent, the council said on Monday.",
        "The museum shows cookies of four centuries, the council said on Monday.",
    ],
)
def test_articles_may_be_about_what_notices_are_about(line: str) -> None:
    html = f"<body><article>{PROSE}<p>{line} {SENTENCES[0]}</p>{PROSE}</article></body>"
    assert line in extract_article(html, URL).clean_text


def test_the_stated_steps_and_answers_of_an_article_are_kept() -> None:
    steps = ["6 eggs", "Beat the eggs."]
    recipe = {
        "@type": "Recipe",
        "recipeIngredient": steps[:1],
        "recipeInstructions": [{"@type": "HowToStep", "text": "<b>Beat</b> the eggs."}],
    }
    question = {
        "@type": "Question",
        "name": "Can they be frozen?",
        "acceptedAnswer": {"@type": "Answer", "text": "No."},
    }
    stated = [recipe, {"@type": "FAQPage", "mainEntity": [question]}]
    shown = [*steps, "Can they be frozen?", "No."]
    items = "".join(f'<div class="widget-card"><span>{part}</span></div>' for part in shown)
    html = (
        f'<body><script type="application/ld+json">{json.dumps(stated)}</script>'
        f"<article>{PROSE}</article><div>{items}</div><div>Imprint</div></body>"
    )
    assert extract_article(html, URL).clean_text.splitlines()[-4:] == shown


def test_lists_and_tables_inside_the_article_are_kept() -> None:
    extra = (
        "<ul><li>First, the pillars are made safe.</li></ul>"
        "<table><tr><td>Northern pillar</td><td>Repaired in 2024.</td></tr></table>"
    )
    html = f"<body><article>{PROSE}{extra}{PROSE}</article></body>"
    text = extract_article(html, URL).clean_text
    assert "First, the pillars are made safe." in text
    assert "Northern pillar Repaired in 2024." in text.splitlines()


def test_links_out_are_absolute_each_once_and_to_other_hosts_only() -> None:
    links = (
        '<p>As <a href="https://other.example/x">they</a> and <a href="//other.example/x#2">we</a>,'
        ' <a href="/own">ours</a>, <a href="mailto:a@b.example">mail</a>,'
        ' <a href="https://other.example/x">they</a> wrote about the bridge again today.</p>'
    )
    html = f"<body><article>{PROSE}{links}</article></body>"
    assert extract_article(html, URL).out_links == (
        "https://other.example/x",
        "https://other.example/x#2",
    )


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("OpinionNewsArticle", URL, "opinion"),
        ("", "https://post.example/opinion/x", "opinion"),
        ("NewsArticle", "https://post.example/live/x", "live"),
        ("ImageGallery", URL, "gallery"),
        ("Review", URL, "review"),
        ("NewsArticle", "https://post.example/health/where-people-live-longest", "news"),
        ("NewsArticle", "https://post.example/tech/apple-watch-11", "news"),
        ("", "https://post.example/national-gallery-reopens", "news"),
        ("NewsArticle", "https://post.example/watch", "news"),
    ],
)
def test_the_type_comes_from_the_page_or_its_address(kind: str, url: str, expected: str) -> None:
    assert article_type(kind, url=url) == expected


def test_all_entries_of_a_live_blog_are_read() -> None:
    entries = "".join(
        f"<article><h1>Entry {number}</h1><p>{sentence} {sentence} {sentence}</p></article>"
        for number, sentence in enumerate(SENTENCES)
    )
    html = f"<body><main><h1>The vote</h1><div>{entries}</div></main></body>"
    live = extract_article(html, "https://post.example/live/vote")
    assert live.article_type == "live"
    assert all(sentence in live.clean_text for sentence in SENTENCES)


def test_a_live_blog_without_text_is_read_from_its_json_ld() -> None:
    entries = [
        {"@type": "BlogPosting", "headline": f"Entry {n}", "articleBody": f"<p>{one} {one}</p>"}
        for n, one in enumerate(SENTENCES)
    ]
    blog = {"@type": "LiveBlogPosting", "headline": "The vote", "liveBlogUpdate": entries}
    html = f'<body><script type="application/ld+json">{json.dumps(blog)}</script><p>Loading</p>'
    article = extract_article(html, URL)
    assert article.text_source == "json-ld"
    assert all(sentence in article.clean_text for sentence in SENTENCES)
    assert "<p>" not in article.clean_text


def test_the_captions_of_a_gallery_are_its_text() -> None:
    figures = "".join(
        f"<figure><img src='{n}.jpg'><figcaption>{one}</figcaption></figure>"
        for n, one in enumerate(SENTENCES)
    )
    html = f"<body><main><h1>The bridge in pictures</h1>{figures}</main></body>"
    article = extract_article(html, "https://post.example/gallery/bridge")
    assert article.article_type == "gallery"
    assert all(sentence in article.clean_text for sentence in SENTENCES)


@pytest.mark.parametrize(
    ("line", "locked"),
    [
        ("Subscribe to continue reading", True),
        ("Subscribe to our newsletter", None),
    ],
)
def test_a_wall_is_known_by_what_it_says(line: str, locked: bool | None) -> None:
    html = f"<body><article><h1>T</h1>{PROSE}</article><div class=paywall>{line}</div></body>"
    assert extract_article(html, URL).is_paywalled is locked


# Measured 0.970 and 0.955 over all pages of the two sets; a floor may only rise.
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_the_texts_and_facts_of_real_pages_stay_above_their_floors(
    bench_data: Path, step: int
) -> None:
    confidences: list[tuple[float, float]] = []
    for name, floor in (("benchmark", 0.965), ("publishers", 0.950)):
        scores = []
        hits: dict[str, list[bool]] = {"title": [], "authors": [], "day": []}
        for key, truth in islice(_truth(bench_data, name).items(), 0, None, step):
            article = _real(bench_data, name, key)
            if truth["body"]:
                scores.append(precision_recall(article.clean_text, str(truth["body"])))
                confidences.append((article.confidence, harmonic_mean(*scores[-1])))
            if name == "publishers":
                _add_hits(hits, article, truth)
        precision, recall = (sum(score[side] for score in scores) / len(scores) for side in (0, 1))
        assert harmonic_mean(precision, recall) >= floor, name
    shares = {fact: sum(found) / len(found) for fact, found in hits.items()}
    assert shares["title"] >= 0.88
    assert shares["authors"] >= 0.86
    assert hits["day"].count(False) <= 2
    confidences.sort()
    half = len(confidences) // 2
    low, high = (sum(f1 for _, f1 in part) for part in (confidences[:half], confidences[-half:]))
    assert low < high - half * 0.01


def _add_hits(hits: dict[str, list[bool]], article: Article, truth: dict[str, object]) -> None:
    if truth["title"]:
        hits["title"].append(fold(article.title) == fold(str(truth["title"])))
    if truth["authors"]:
        known = {fold(str(name)) for name in truth["authors"]}  # type: ignore[attr-defined]  # JSON
        hits["authors"].append({fold(name) for name in article.authors} == known)
    if truth["published_at"]:
        hits["day"].append(_day(article.published_at) == _day_of(str(truth["published_at"])))
    else:
        # No date is invented.
        assert article.published_at is None


def _truth(bench_data: Path, name: str) -> dict[str, dict[str, object]]:
    folder = bench_data / "articles" / name
    if name == "benchmark":
        known = json.loads((folder / "ground-truth.json").read_text())
        return {key: {"body": value["articleBody"]} for key, value in known.items()}
    paths = sorted((folder / "truth").glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in paths}


def _real(bench_data: Path, name: str, key: str) -> Article:
    path = bench_data / "articles" / name / "html" / f"{key}.html.gz"
    return extract_article(gzip.decompress(path.read_bytes()), "")


def _day(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


def _day_of(written: str) -> str:
    moment = datetime.fromisoformat(written)
    return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()
