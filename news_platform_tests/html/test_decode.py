"""Page bytes become the text a browser would show, the same for everyone who reads pages."""

import random

import pytest

from news_platform.articles.extract import extract_article
from news_platform.ccnews.page import CrawledPage, read_page
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import RecordInfo, WarcResponse
from news_platform.html.decode import (
    content_type_charset,
    decode_html,
    encoding_of_label,
    html_text,
)
from news_platform.html.links import feed_urls
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import segment
from news_platform.source_records.snapshots import SourcePage

GERMAN = "Größere Straßen führen künftig über die Brücke, sagte Bürgermeisterin Jäger."
RUSSIAN = "Новости города: мост открыт, движение по нему полностью восстановлено."
JAPANESE = "市は新しい橋を開通させた。全長は三百メートル〜四百メートルである①。"
CHINESE = "市政府宣布新桥通车，市民对此表示欢迎，镕基路恢复通行。"
KOREAN = "시는 새 다리를 개통했다고 밝혔다. 똠방각하 펲시."
ENGLISH = "The bridge opens at five o’clock, says the mayor of the town — at last."


def html(text: str, *, meta: str = "") -> str:
    """Return a page whose title and paragraph are the text."""
    return (
        f"<!DOCTYPE html><html><head>{meta}<title>{text}</title></head>"
        f"<body><article><h1>{text}</h1><p>{text}</p></article><footer>END</footer></body></html>"
    )


def meta(charset: str) -> str:
    return f'<meta charset="{charset}">'


def case(text: str, codec: str, *, header: str | None = None, label: str = "", name: str) -> object:
    """Return one row of the table: the page's bytes, the header's charset, and its text."""
    body = html(text, meta=meta(label) if label else "").encode(codec)
    return pytest.param(body, header, text, id=name)


def scratched(body: bytes) -> bytes:
    """Return the page with one byte in its footer that no encoding has there."""
    return body.replace(b"END", b"\xff END")


BOM = b"\xef\xbb\xbf"
TABLE = [
    case(GERMAN, "utf-8", header="utf-8", name="utf-8"),
    case(GERMAN, "utf-8", header="no-such-charset", name="unknown label"),
    case(GERMAN, "utf-8", header="iso-8859-1", name="utf-8, header says latin-1"),
    case(GERMAN, "cp1252", header="utf-8", name="latin-1, header says utf-8"),
    case(RUSSIAN, "cp1251", header="utf-8", label="windows-1251", name="the meta element is right"),
    case(RUSSIAN, "cp1251", header="windows-1251", label="utf-8", name="the header wins"),
    case(ENGLISH, "cp1252", header="ISO-8859-1", name="o\\x92clock as ISO-8859-1"),
    case(JAPANESE.replace("〜", "～"), "cp932", header="shift_jis", name="shift_jis means cp932"),
    case(JAPANESE, "euc_jis_2004", header="euc-jp", name="euc-jp with NEC's extension"),
    case(KOREAN, "cp949", header="euc-kr", name="euc-kr means cp949"),
    case(GERMAN, "utf-8", label="utf-16", name="meta utf-16 means utf-8"),
    case(GERMAN, "utf-8", header="utf-16", name="header says utf-16, not a zero byte in it"),
    case(RUSSIAN, "utf-16-le", name="utf-16 without a mark"),
    pytest.param(BOM + html(GERMAN).encode(), "iso-8859-1", GERMAN, id="utf-8 mark"),
    pytest.param(html(GERMAN).encode("utf-16"), "utf-8", GERMAN, id="utf-16 mark"),
    pytest.param(scratched(html(GERMAN).encode()), None, GERMAN, id="scratch, undeclared"),
    pytest.param(
        html(CHINESE).encode("gbk").replace(b"END", b"\xff END"), "gbk", CHINESE, id="scratch, gbk"
    ),
]


@pytest.mark.parametrize(("body", "charset", "text"), TABLE)
def test_a_page_is_decoded_to_its_text(body: bytes, charset: str | None, text: str) -> None:
    page = decode_html(body, charset)
    assert f"<title>{text}</title>" in page.text
    assert f"<p>{text}</p>" in page.text
    assert page.utf8.decode() == page.text


def test_articles_crawled_pages_segments_and_feed_links_are_read_in_the_headers_charset() -> None:
    text, charset = RUSSIAN, "windows-1251"
    body = html(text).encode("cp1251")
    article = extract_article(body, "https://post.example/a", charset)
    assert (article.title, article.clean_text) == (text, text)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\n".encode()
    record = RecordInfo(0, 10, 20, "https://post.example/a", "2025-11-01T01:44:44Z", "sha1:ABC")
    crawled = read_page(WarcResponse(record, None, head, body, True), CollectOptions())
    assert isinstance(crawled, CrawledPage)
    assert crawled.stated.title == text and text in crawled.text
    page = SourcePage(body, url="https://u1.edu/", institution="u1", charset=charset)
    segmented = segment(page, SegmentOptions())
    assert text in [decision.block.text for decision in segmented.decisions]
    link = '<link rel="alternate" type="application/rss+xml" href="/новости.xml">'
    linked = html("x", meta=link).encode("cp1251")
    found = feed_urls(linked, url="https://post.example/", charset=charset)
    assert found == ("https://post.example/новости.xml",)


CONTROLS = {chr(code) for code in (*range(32), *range(127, 160))} - set("\t\n\r")
ESCAPES = ("&#27;", "&#x1B;", "&#0027", "&#x0001b", "&#7;", "&#127;", "&#129;", "&#x9d;", "&#12;")


def test_no_reference_to_a_control_character_is_resolved() -> None:
    """Parsers resolve references after the text was decoded, and a terminal obeys the result."""
    text = "x".join(("Red", *(f"{one} [31m" for one in ESCAPES), "&#8217;&#146;&#100;"))
    head = (
        f'<meta name="author" content="{text}"><meta property="article:section" content="{text}">'
    )
    for page in (html(text, meta=head), html(text, meta=head).encode()):
        article = extract_article(page, "https://post.example/a", None)
        assert article.title.startswith("Red") and article.title.endswith("\u2019\u2019d")
        shown = (article.title, article.clean_text, article.full_text, article.section)
        assert not set("".join(map(str, (*shown, *article.authors)))) & CONTROLS
    source = SourcePage(html(text).encode(), url="https://u1.edu/", institution="u1")
    texts = [one.block.text for one in segment(source, SegmentOptions()).decisions]
    assert texts and not set("".join(texts)) & CONTROLS


@pytest.mark.parametrize(
    ("start", "encoding"),
    [
        ('<meta charset="windows-1251">', "windows-1251"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=cp1251">', "windows-1251"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "windows-1251"),
        ("<script>" + "x" * 2_000 + "</script><meta charset=cp1251>", "windows-1251"),
        ('<!-- <meta charset="koi8-r"> --><meta charset="cp1251">', "windows-1251"),
        (
            '<meta name="description" content="a charset=koi8-r"><meta charset=cp1251>',
            "windows-1251",
        ),
        ("<metal charset=koi8-r><meta charset=cp1251>", "windows-1251"),
    ],
)
def test_the_meta_element_is_found_as_browsers_find_it(start: str, encoding: str) -> None:
    assert decode_html(start.encode() + b"caf\xe9 society").encoding == encoding


@pytest.mark.parametrize(
    ("encoding", "labels"),
    [
        ("windows-1252", "iso-8859-1 ISO8859-1 latin1 latin-1 l1 ascii us-ascii cp819 cp1252"),
        ("gbk", "gb2312 gb_2312-80 x-gbk chinese"),
        ("shift_jis", "sjis x-sjis ms932 windows-31j shift-jis"),
        ("iso-8859-8", "iso-8859-8 iso-8859-8-i hebrew logical"),
        ("utf-8", "utf8 UTF-8 unicode-1-1-utf-8"),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(encoding: str, labels: str) -> None:
    assert {encoding_of_label(label) for label in labels.split()} == {encoding}
    assert encoding_of_label(encoding) == encoding


@pytest.mark.parametrize("label", ["", "utf-7", "²", "x" * 9_000])
def test_other_labels_are_unknown(label: str) -> None:
    assert encoding_of_label(label) is None


def test_utf_8_cut_within_a_character_loses_that_character_alone() -> None:
    for text in (RUSSIAN * 20, "only ASCII before"):
        body = text.encode() + "я".encode()[:1]
        assert decode_html(body, "utf-8").text == text + "\ufffd"


def test_a_page_about_the_replacement_character_is_utf_8() -> None:
    text = "\ufffd" * 50 + "ü"
    assert decode_html(text.encode() + b"\xff").text == text + "\ufffd"


def test_one_byte_that_is_valid_utf_8_by_chance_does_not_outweigh_the_declaration() -> None:
    body = "<p>A word: 聽</p>".encode("gbk")  # its two bytes are a valid UTF-8 character
    assert body.decode()
    assert decode_html(body, "gbk").text == "<p>A word: 聽</p>"


def test_any_bytes_give_text_that_can_be_stored() -> None:
    draw = random.Random(13)
    bodies = [draw.randbytes(draw.randrange(300)) for _ in range(200)]
    bodies += [b"", b"\xff\xfe\x00\xd8", bytes(range(256)) * 3, b"\xed\xa0\x80" * 50, b"<\0"]
    for body in bodies:
        for declared in (None, "utf-8", "utf-16", "shift_jis", "gb2312", "iso-2022-jp", "big5"):
            page = decode_html(body, declared)
            assert page.utf8.decode() == page.text


def test_lone_surrogates_in_a_str_are_replaced() -> None:
    text = html_text("before \ud83d after \U0001f600")
    assert text == "before \ufffd after \U0001f600"
    page = html("News \ud83d of the bridge")
    assert extract_article(page, "https://post.example/").title == "News \ufffd of the bridge"
    found = segment(SourcePage(page, url="u", institution="u1"), SegmentOptions())
    assert "News \ufffd of the bridge" in [decision.block.text for decision in found.decisions]


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        ("text/html;charset='koi8-r'; x=y", "koi8-r"),
        ('text/html; Charset = "GBK"', "gbk"),
        ("text/html", None),
    ],
)
def test_the_charset_of_a_content_type(content_type: str, charset: str | None) -> None:
    assert content_type_charset(content_type) == charset


@pytest.mark.parametrize("signs", [0, 40, 200])
def test_a_c1_control_after_many_signs_with_its_lead_byte_is_removed(signs: int) -> None:
    page = decode_html(("\u00a9 " * signs + "a\u0096b \u00bb").encode(), "utf-8")
    assert page.text == "\u00a9 " * signs + "ab \u00bb"
    assert page.utf8 == page.text.encode()
