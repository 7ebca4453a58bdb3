"""Pages that are broken, huge or hostile give an article or an empty one, in bounded time."""

import gzip
import random
import time
from pathlib import Path

import pytest

from news_platform.articles.article import Article
from news_platform.articles.extract import extract_article
from news_platform_tests.rss.web import SENTENCES

URL = "https://post.example/2025/11/03/bridge"
LONG = " ".join(SENTENCES)
PROSE = "".join(f"<p>{sentence} {sentence}</p>" for sentence in SENTENCES)
COMMENT = (
    '<div class="comment"><b>Reader {0}</b><p>{1} I think, number {0}, it is a shame.</p></div>'
)
HOSTILE = {
    "20,000 nested elements": "<div>" * 20_000 + PROSE + "</div>" * 20_000,
    "frameset": "<frameset><frame src='a'></frameset>",
    "one long line": "<body>" + f"{LONG} " * 2_000,
    "10,000 line breaks": "<body>" + "word word<br>" * 10_000,
    "30,000 links": "<body>" + '<a href="/x">text</a> ' * 30_000,
    "10,000 headlines": f"<title>a b c</title>{'<h1>a b c</h1>' * 10_000}",
    "20,000 separators": f"<title>{'a - ' * 20_000}</title>{PROSE}",
    "50,000 names": f'<meta name="author" content="{"a, " * 50_000}">{PROSE}',
    "right to left": f'<html dir="rtl"><body>{"<p>أعلن المجلس إصلاح الجسر القديم.</p>" * 20}',
    "only digits": f"<h1>T</h1><p>{'1' * 50_000}</p><p>{'12.12.12.' * 9_000}</p>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_gives_an_article_in_bounded_time(name: str) -> None:
    started = time.process_time()
    assert isinstance(extract_article(HOSTILE[name], URL), Article)
    # The worker that runs it has a deadline of its own; the slowest takes a second.
    assert time.process_time() - started < 20


def test_bytes_of_several_charsets_on_one_page_give_the_readable_part() -> None:
    mixed = (
        f"<body>{PROSE}".encode()
        + "<p>Größe</p>".encode("latin-1")
        + "<p>мост</p>".encode("cp1251")
    )
    assert SENTENCES[0] in extract_article(mixed, URL).clean_text


def test_ten_thousand_comments_are_not_the_article() -> None:
    comments = "".join(COMMENT.format(number, SENTENCES[number % 5]) for number in range(10_000))
    html = (
        f'<body><article><h1>Bridge</h1>{PROSE}</article><div id="comments">{comments}</div></body>'
    )
    text = extract_article(html, URL).clean_text
    assert SENTENCES[0] in text
    assert "I think" not in text


def test_comments_are_the_text_where_there_is_no_other() -> None:
    comments = "".join(f'<div class="comment"><p>{LONG} {n}</p></div>' for n in range(5))
    assert LONG in extract_article(f"<body><h1>A thread</h1>{comments}</body>", URL).clean_text


@pytest.mark.soak
def test_a_page_of_thirty_megabytes_gives_an_article() -> None:
    html = "<body>" + f"<p>{LONG}</p>" * (30_000_000 // len(LONG))
    assert LONG in extract_article(html, URL).clean_text


def mutated(html: bytes, dice: random.Random) -> bytes:
    """Return the page with a few random cuts, copies, flipped bytes and stray tags."""
    data = bytearray(html)
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(data) or 1)
        size = dice.choice((1, 10, 1_000, 50_000))
        kind = dice.randrange(5)
        if kind == 0:
            del data[at : at + size]
        elif kind == 1:
            data[at:at] = data[at : at + size]
        elif kind == 2:
            data[at : at + 1] = bytes([dice.randrange(256)])
        elif kind == 3:
            data[at:at] = dice.choice(STRAY)
        else:
            data[at : at + size] = bytes(dice.randrange(256) for _ in range(min(size, 100)))
    return bytes(data)


STRAY = (
    b"<div>",
    b"</body>",
    b"<!--",
    b"]]>",
    b"<script>",
    b"\x00",
    b"\xff\xfe",
    b"<h1>",
    b"<table><tr>",
    b'<meta charset="utf-16">',
    b'<time datetime="99999-99-99">',
    b"<a href='http://[x'>",
    b"\xed\xa0\x80",
    b'<script type="application/ld+json">{"@type":["NewsArticle"],"author":{"name":[[]]}}</script>',
)


def fuzz(bench_data: Path, rounds: int, *, seed: int = 17) -> None:
    paths = sorted((bench_data / "articles").glob("*/html/*.html.gz"))
    paths += sorted((bench_data / "articles" / "corpus").glob("*/html/*.html.gz"))
    dice = random.Random(seed)
    for number in range(rounds):
        html = gzip.decompress(dice.choice(paths).read_bytes())
        broken = mutated(html, dice)
        article = extract_article(broken, URL, dice.choice((None, "utf-8", "gbk", "x")))
        assert 0 <= article.confidence <= 1, number


def test_mutated_real_pages_never_raise(bench_data: Path) -> None:
    fuzz(bench_data, 15)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_twenty_thousand_mutated_real_pages_never_raise(bench_data: Path, part: int) -> None:
    fuzz(bench_data, 5_000, seed=part)
