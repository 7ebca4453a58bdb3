"""Vectors for every signal: what a site sends, and the verdict that must follow.

The source of an expectation stands beside it: `RFC 9309`, `AIPREF` (attach-05, vocab-08), `CS`
(Cloudflare's content signals policy), `RSL` (RSL 1.0), `TDMRep` (the W3C community report of 2024),
`Google` (its robots meta specification), `DeviantArt` (noai), `Spawning` (ai.txt), `JournalList`
(trust.txt), or `choice` where no source decides: then restrictions are read leniently and grants
strictly.
"""

import pytest
from resiliparse.parse.html import HTMLTree

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.domain_metadata.signals.page_signals import (
    parse_header_signals,
    parse_html_signals,
)
from news_platform.domain_metadata.signals.robots_signals import (
    license_urls,
    parse_content_usage,
    parse_dictionary,
    parse_robots_signals,
)
from news_platform.domain_metadata.signals.statements import PURPOSES, Purpose
from news_platform.domain_metadata.signals.verdict import decide
from news_platform.domain_metadata.signals.well_known import (
    is_llms_txt,
    parse_ai_txt,
    parse_rsl,
    parse_tdmrep,
    parse_trust_txt,
    security_contacts,
)
from news_platform.web.robots import Robots

URL = "https://a.example/"
SHORT = {"a": "allow", "r": "refuse", "p": "partial", "u": "unspecified", "c": "conflicting"}


def verdicts(
    statements: list[UseStatement],
    *,
    robots: bytes = b"",
    bot: str = "AnyBot",
    path: str | None = "/",
) -> str:
    """Return the first letters of the verdicts for index, search, ai_input and ai_train."""
    rules = Robots.parse(robots)
    found = [*parse_robots_signals(robots, source="robots.txt", rules=rules).statements]
    return "".join(
        decide([*found, *statements], rules=rules, bot=bot, purpose=purpose, path=path).verdict[0]
        for purpose in PURPOSES
    )


def star(*lines: str) -> bytes:
    """Return a robots.txt with one group for everybody."""
    return "\n".join(["User-agent: *", *lines]).encode()


# robots.txt, crawler, path, verdicts for index, search, ai_input, ai_train; source
ROBOTS = [
    # access rules
    (b"", "GPTBot", "/", "uuuu", "RFC 9309"),
    (star("Disallow: /"), "GPTBot", "/", "rrrr", "RFC 9309"),
    (star("Disallow: /"), "GPTBot", "/a", "rrrr", "RFC 9309"),
    (star("Disallow: /p/"), "GPTBot", "/p/a", "rrrr", "RFC 9309"),
    (star("Disallow: /p/"), "GPTBot", "/q", "auuu", "choice: everybody's access is not AI use"),
    (star("Disallow: /p/"), "GPTBot", None, "pppp", "choice: a part of the site is refused"),
    (star("Disallow: /p/"), "GPTBot", "/", "auuu", "choice: / is the home page"),
    (star("Disallow: /", "Allow: /$"), "GPTBot", None, "pppp", "choice"),
    (star("Disallow: /", "Allow: /$"), "GPTBot", "/", "auuu", "RFC 9309"),
    (star("Disallow: /"), "GPTBot", None, "rrrr", "RFC 9309"),
    (
        star("Disallow: /p/", "Content-Signal: ai-train=yes"),
        "GPTBot",
        None,
        "pppp",
        "choice: what is closed is not allowed",
    ),
    (star("Allow: /"), "GPTBot", "/", "auuu", "choice"),
    (star("Disallow:"), "GPTBot", "/", "auuu", "RFC 9309"),
    (b"User-agent: GPTBot\nDisallow: /", "GPTBot", "/", "rrrr", "RFC 9309"),
    (b"User-agent: GPTBot\nDisallow: /", "gptbot", "/", "rrrr", "RFC 9309: tokens ignore case"),
    (b"User-agent: GPTBot\nDisallow: /", "ClaudeBot", "/", "uuuu", "RFC 9309"),
    (b"User-agent: GPTBot\nAllow: /", "GPTBot", "/", "uuua", "OpenAI: GPTBot is for training"),
    (b"User-agent: OAI-SearchBot\nAllow: /", "OAI-SearchBot", "/", "aauu", "OpenAI: search"),
    (b"User-agent: ChatGPT-User\nAllow: /", "ChatGPT-User", "/", "uuau", "OpenAI: user-triggered"),
    (b"User-agent: GPTBot\nDisallow: /x/", "GPTBot", None, "pppp", "choice"),
    (b"User-agent: GPTBot\nDisallow: /x/", "GPTBot", "/x/1", "rrrr", "RFC 9309"),
    (b"User-agent: GPTBot\nDisallow: /x/", "GPTBot", "/y", "uuua", "choice"),
    (b"User-agent: AI2Bot\nDisallow: /", "AI2Bot", "/", "rrrr", "RFC 9309"),
    (
        b"User-agent: GPTBot\nDisallow: /\nUser-agent: GPTBot\nAllow: /",
        "GPTBot",
        "/",
        "uuua",
        "RFC 9309: groups combine, allow wins a tie",
    ),
    (
        star("Allow: /") + b"\nUser-agent: *\nDisallow: /x",
        "GPTBot",
        "/x",
        "rrrr",
        "RFC 9309: groups combine",
    ),
    # Content-Signal
    (star("Content-Signal: search=yes"), "GPTBot", "/", "aauu", "CS"),
    (star("Content-Signal: search=no"), "GPTBot", "/", "rruu", "CS"),
    (star("Content-Signal: ai-input=yes"), "GPTBot", "/", "uuau", "CS"),
    (star("Content-Signal: ai-input=no"), "GPTBot", "/", "uuru", "CS"),
    (star("Content-Signal: ai-train=yes"), "GPTBot", "/", "uuua", "CS"),
    (star("Content-Signal: ai-train=no"), "GPTBot", "/", "uuur", "CS"),
    (
        star("Content-Signal: search=yes, ai-input=no, ai-train=no"),
        "GPTBot",
        "/",
        "aarr",
        "CS",
    ),
    (star("Content-Signal: search=yes,ai-train=no,use=reference"), "Bot", "/", "aarr", "CS"),
    (star("Content-Signal: use=immediate"), "Bot", "/", "rrur", "choice"),
    (star("Content-Signal: use=full"), "Bot", "/", "uuau", "choice"),
    (
        star("Content-Signal: use=maximal"),
        "Bot",
        "/",
        "uuuu",
        "choice: kept raw",
    ),
    (star("content-signal:SEARCH = Yes , AI-TRAIN=NO"), "Bot", "/", "aaur", "choice"),
    (star("Content-Signal: ai-train=yes, ai-train=no"), "Bot", "/", "uuur", "choice"),
    (star("Content-Signal: ai-train=disallow, search=allow"), "Bot", "/", "uuur", "choice"),
    (star("Content-Signal: ai-train=conditional"), "Bot", "/", "uuuu", "choice"),
    (star("Content-Signal: search-ai=no"), "Bot", "/", "uuuu", "choice"),
    (star("Content-Signals: ai-train=no"), "Bot", "/", "uuur", "choice: the plural is a typo"),
    (star("Content-Signal: ai-train=no # by our lawyers"), "Bot", "/", "uuur", "RFC 9309"),
    (star("Content-Signal: "), "Bot", "/", "uuuu", "choice"),
    (star("Content-Signal: ,,,"), "Bot", "/", "uuuu", "choice"),
    (star("Content-Signal: ai-train"), "Bot", "/", "uuuu", "choice"),
    (star("Content-Signal: =no"), "Bot", "/", "uuuu", "choice"),
    (b"Content-Signal: ai-train=no", "GPTBot", "/", "uuur", "choice: binds all outside a group"),
    (
        b"Content-Signal: ai-train=no\nUser-agent: GPTBot\nDisallow: /x",
        "GPTBot",
        "/y",
        "uuuc",
        "choice",
    ),
    (
        star("Content-Signal: ai-train=no", "Allow: /") + b"\nUser-agent: GPTBot\nDisallow: /x",
        "GPTBot",
        "/y",
        "uuua",
        "choice: a signal reaches those who select its group",
    ),
    (
        star("Content-Signal: ai-train=no", "Allow: /") + b"\nUser-agent: GPTBot\nDisallow: /x",
        "ClaudeBot",
        "/y",
        "auur",
        "choice",
    ),
    (star("Disallow: /", "Content-Signal: search=yes"), "Bot", "/", "rrrr", "RFC 9309"),
    # Content-Usage
    (star("Content-Usage: train-ai=n, search=y"), "Bot", "/", "aaur", "AIPREF"),
    (star("Content-Usage: ai-use=n"), "Bot", "/", "uuru", "AIPREF"),
    (star("Content-Usage: ai-use=y"), "Bot", "/", "uuau", "AIPREF"),
    (star("Content-Usage: search=n"), "Bot", "/", "rruu", "AIPREF"),
    (star("Content-Usage: Train-AI=n"), "Bot", "/", "uuuu", "AIPREF"),
    (star('Content-Usage: train-ai, search="n"'), "Bot", "/", "uuuu", "AIPREF"),
    (star("Content-Usage: train-ai=no, ai-train=no"), "Bot", "/", "uuuu", "AIPREF"),
    (star("Content-Usage: train-ai=y, train-ai=n"), "Bot", "/", "uuur", "AIPREF"),
    (star("Content-Usage: train-ai=n, train-ai=y"), "Bot", "/", "uuua", "AIPREF"),
    (star("Content-Usage: train-ai=n,"), "Bot", "/", "uuuu", "AIPREF"),
    (star("Content-Usage: train-ai=n search=n"), "Bot", "/", "uuuu", "AIPREF"),
    (star("Content-Usage: bots=n, train-genai=n"), "Bot", "/", "uuuu", "AIPREF"),
    (star("Content-Usage: train-ai=n;reason=x"), "Bot", "/", "uuur", "AIPREF"),
    (star("cOntent-usage :  train-ai=n # x"), "Bot", "/", "uuur", "AIPREF"),
    (
        star("Content-Usage: train-ai=n", "Content-Usage: /ok/ train-ai=y"),
        "Bot",
        "/ok/a",
        "uuua",
        "AIPREF",
    ),
    (
        star("Content-Usage: train-ai=n", "Content-Usage: /ok/ train-ai=y"),
        "Bot",
        "/no",
        "uuur",
        "AIPREF",
    ),
    (
        star("Content-Usage: /a/ train-ai=y", "Content-Usage: /a/ train-ai=n"),
        "Bot",
        "/a/1",
        "uuur",
        "AIPREF",
    ),
    (star("Content-Usage: /a/train-ai=n"), "Bot", "/a/1", "uuuu", "AIPREF"),
    (star("Content-Usage: /img/*.png$ ai-use=n"), "Bot", "/img/1.png", "uuru", "AIPREF"),
    (star("Content-Usage: /img/*.png$ ai-use=n"), "Bot", "/img/1.jpg", "uuuu", "AIPREF"),
    (star("Content-Usage: /img/ train-ai=n"), "Bot", None, "uuup", "choice: part of the site"),
    (star("Content-Usage: /img/ train-ai=y"), "Bot", None, "uuuu", "choice: a part is not all"),
    (
        star("Content-Usage: train-ai=n", "Content-Usage: /ok/ train-ai=y"),
        "Bot",
        None,
        "uuup",
        "choice",
    ),
    (star("Disallow: /p/", "Content-Usage: /p/ train-ai=y"), "Bot", "/p/1", "rrrr", "AIPREF"),
    (b"Content-Usage: train-ai=n\n" + star("Allow: /"), "Bot", "/", "auuu", "choice"),
    (
        star("Content-Signal: ai-train=yes", "Content-Usage: train-ai=n"),
        "Bot",
        "/",
        "uuuc",
        "choice",
    ),
    (
        star("Content-Signal: ai-train=no", "Content-Usage: train-ai=n"),
        "Bot",
        "/",
        "uuur",
        "choice",
    ),
    # encodings and line ends
    (b"\xef\xbb\xbf" + star("Content-Signal: ai-train=no"), "Bot", "/", "uuur", "RFC 9309"),
    (star("Content-Signal: ai-train=no").replace(b"\n", b"\r\n"), "Bot", "/", "uuur", "RFC 9309"),
    (star("Content-Signal: ai-train=no").replace(b"\n", b"\r"), "Bot", "/", "uuur", "RFC 9309"),
    (
        star("Content-Signal: ai-train=no").decode().encode("utf-16"),
        "Bot",
        "/",
        "uuur",
        "choice: crawlers cannot read the rules, but the wish is clear",
    ),
    (b"#" * 600_000 + b"\n" + star("Content-Signal: ai-train=no"), "Bot", "/", "uuuu", "RFC 9309"),
    (star("DisallowAITraining: /"), "Bot", "/", "rrrr", "Google: a key may have a suffix"),
    (star("Content-Signal: ai-train=no") * 50, "Bot", "/", "uuur", "choice"),
    (b"User-agent: *\nContent-Signal: ai-train=\xff\xfe", "Bot", "/", "uuuu", "choice"),
]


@pytest.mark.parametrize(
    ("robots", "bot", "path", "expected"),
    [row[:4] for row in ROBOTS],
    ids=[f"{n}-{row[0][:40]!r}" for n, row in enumerate(ROBOTS)],
)
def test_a_robots_txt_is_read_as_its_sources_say(
    robots: bytes, bot: str, path: str | None, expected: str
) -> None:
    assert verdicts([], robots=robots, bot=bot, path=path) == expected


RSL = '<rsl xmlns="https://rslstandard.org/rsl">{}</rsl>'
LICENSE = '<content url="{}"><license>{}</license></content>'


def rsl(terms: str, *, url: str = "/") -> list[UseStatement]:
    """Return the statements of a document with one content element."""
    body = RSL.format(LICENSE.format(url, terms)).encode()
    return parse_rsl(body, source="https://a.example/license.xml")


# licence terms, path, verdicts; source
LICENSES = [
    ('<permits type="usage">search</permits>', "/", "aarr", "RSL: the list is closed"),
    ('<permits type="usage">all</permits>', "/", "aaaa", "RSL"),
    ('<permits type="usage">ai-all</permits>', "/", "rraa", "RSL"),
    ('<permits type="usage">ai-train</permits>', "/", "rrra", "RSL"),
    ('<permits type="usage">ai-input</permits>', "/", "rrar", "RSL"),
    ('<permits type="usage">search ai-input</permits>', "/", "aaar", "RSL"),
    ('<permits type="usage">search,ai-input</permits>', "/", "aaar", "choice: the 0.9 habit"),
    ('<permits type="usage"></permits>', "/", "rrrr", "RSL: nothing is listed"),
    ('<prohibits type="usage">ai-train</prohibits>', "/", "uuur", "RSL"),
    ('<prohibits type="usage">all</prohibits>', "/", "rrrr", "RSL"),
    (
        '<permits type="usage">ai-train</permits><prohibits type="usage">all</prohibits>',
        "/",
        "rrrr",
        "RSL: a prohibition beats a permission",
    ),
    (
        '<permits type="usage">all</permits><prohibits type="usage">ai-train</prohibits>',
        "/",
        "aaar",
        "RSL",
    ),
    ('<permits type="ai-train"/>', "/", "rrra", "choice: a token as type"),
    ('<permits type="usage">all</permits><payment type="purchase"/>', "/", "rrrr", "choice"),
    ('<permits type="usage">all</permits><payment type="free"/>', "/", "aaaa", "RSL"),
    ('<permits type="usage">all</permits><payment type="attribution"/>', "/", "aaaa", "RSL"),
    (
        '<permits type="usage">all</permits><permits type="geo">DE</permits>',
        "/",
        "uuuu",
        "choice: a limited grant is no grant",
    ),
    ('<permits type="usage">juggling</permits>', "/", "rrrr", "RSL"),
    ("<legal/>", "/", "uuuu", "RSL"),
]


@pytest.mark.parametrize(
    ("terms", "path", "expected"), [row[:3] for row in LICENSES], ids=[row[0] for row in LICENSES]
)
def test_a_licence_is_read_as_rsl_says(terms: str, path: str, expected: str) -> None:
    assert verdicts(rsl(terms), path=path) == expected


def test_the_longest_path_of_a_licence_counts() -> None:
    body = RSL.format(
        LICENSE.format("/", '<prohibits type="usage">all</prohibits>')
        + LICENSE.format("/open/", '<permits type="usage">all</permits>')
    ).encode()
    statements = parse_rsl(body, source="l")
    assert verdicts(statements, path="/open/1") == "aaaa"
    assert verdicts(statements, path="/closed") == "rrrr"


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (b"<html><body>Not found</body></html>", "not_rsl"),
        (b"", "not_rsl"),
        (b"<rsl", "not_rsl"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><rsl xmlns="https://rslstandard.org/rsl"/>', "not_rsl"),
        (RSL.format('<content url="/"/>').encode(), "content_without_license"),
        (RSL.format('<content url="/"><licence/></content>').encode(), "unknown_element"),
        (RSL.format("").encode(), "no_license"),
    ],
)
def test_a_document_that_is_not_a_licence_says_nothing(body: bytes, flag: str) -> None:
    statements = parse_rsl(body, source="l")
    assert [flag in one.flags for one in statements] == [True]
    assert verdicts(statements) == "uuuu"


def test_a_foreign_element_in_a_licence_is_ignored() -> None:
    other = '<x xmlns="https://other.example/">?</x>'
    assert verdicts(rsl(f'{other}<permits type="usage">search</permits>')) == "aarr"


@pytest.mark.parametrize(
    ("robots", "agent", "expected"),
    [
        (b"License: https://a.example/l.xml", "Bot", ["https://a.example/l.xml"]),
        (b"License: https://a/1\nUser-agent: *\nLicense: https://a/2", "Bot", ["https://a/2"]),
        (b"License: /license.xml", "Bot", []),
        (b"license :  https://a/1  # x", "Bot", ["https://a/1"]),
        (b"License: https://a/1\nLicense: https://a/2", "Bot", ["https://a/1", "https://a/2"]),
        (
            b"User-agent: *\nLicense: https://a/1\nAllow: /\nUser-agent: Bot\nLicense: https://a/2",
            "Bot",
            ["https://a/2"],
        ),
    ],
)
def test_the_licence_of_the_selected_group_replaces_the_global_one(
    robots: bytes, agent: str, expected: list[str]
) -> None:
    statements = parse_robots_signals(robots, source="robots.txt").statements
    assert license_urls(statements, agent) == expected


# header lines by name, verdicts; source
HEADERS = [
    ({"x-robots-tag": ["noindex"]}, "rruu", "Google"),
    ({"x-robots-tag": ["none"]}, "rruu", "Google"),
    ({"x-robots-tag": ["NoAI"]}, "uurr", "DeviantArt"),
    ({"x-robots-tag": ["noimageai"]}, "uurr", "DeviantArt"),
    ({"x-robots-tag": ["noai, noimageai"]}, "uurr", "DeviantArt"),
    ({"x-robots-tag": ["nosnippet"]}, "uuru", "Google"),
    ({"x-robots-tag": ["all"]}, "uuuu", "Google"),
    ({"x-robots-tag": ["noarchive"]}, "uuuu", "choice: recorded only"),
    ({"x-robots-tag": ["noml"]}, "uuuu", "choice: recorded only"),
    ({"x-robots-tag": ["max-snippet:0, noai"]}, "uurr", "Google"),
    ({"x-robots-tag": ["unavailable_after: Wed, 03 Dec 2025 13:00:00 GMT"]}, "uuuu", "Google"),
    ({"x-robots-tag": ["noai, unavailable_after: Wed, 03 Dec 2025"]}, "uurr", "Google"),
    ({"x-robots-tag": ["otherbot: noai, noimageai"]}, "uuuu", "choice: binds another crawler"),
    ({"x-robots-tag": ["anybot: noai"]}, "uurr", "Google"),
    ({"x-robots-tag": ["otherbot: noindex", "noai"]}, "uurr", "Google"),
    ({"x-robots-tag": [""]}, "uuuu", "Google"),
    ({"content-usage": ["train-ai=n"]}, "uuur", "AIPREF"),
    ({"content-usage": ["train-ai=n", "train-ai=y"]}, "uuua", "AIPREF: lines are joined"),
    ({"content-usage": ["train-ai=n,"]}, "uuuu", "AIPREF"),
    ({"content-signal": ["ai-input=no"]}, "uuru", "choice"),
    ({"tdm-reservation": ["1"]}, "uurr", "TDMRep"),
    ({"tdm-reservation": ["0"]}, "uuuu", "TDMRep"),
    ({"tdm-reservation": ["yes"]}, "uuuu", "TDMRep"),
    ({"tdm-reservation": [" 1 "]}, "uurr", "TDMRep"),
    ({"tdm-policy": ["https://a.example/p.json"]}, "uuuu", "TDMRep"),
]


@pytest.mark.parametrize(
    ("headers", "expected"), [row[:2] for row in HEADERS], ids=[str(row[0]) for row in HEADERS]
)
def test_a_header_speaks_about_its_page(headers: dict[str, list[str]], expected: str) -> None:
    statements = parse_header_signals(headers, url=URL)
    assert verdicts(statements) == expected
    assert verdicts(statements, path="/another/page") == "uuuu"


# head elements, verdicts; source
META = [
    ('<meta name="robots" content="noindex">', "rruu", "Google"),
    ('<meta name="ROBOTS" content="NoIndex,NOAI">', "rrrr", "Google"),
    ('<meta name="robots" content="noai, noimageai">', "uurr", "DeviantArt"),
    ('<meta name="googlebot" content="noindex">', "uuuu", "Google: another crawler"),
    ('<meta name="robots" content="index, follow">', "uuuu", "Google"),
    ('<meta name="robots" content="noindex"><meta name="robots" content="all">', "rruu", "Google"),
    ('<meta name="tdm-reservation" content="1">', "uurr", "TDMRep"),
    ('<meta name="TDM-Reservation" content="1">', "uurr", "choice"),
    ('<meta name="tdm-reservation" content="true">', "uuuu", "TDMRep"),
    ('<meta name="tdm-reservation">', "uuuu", "TDMRep"),
    ('<meta name="description" content="noai">', "uuuu", "Google"),
]


@pytest.mark.parametrize(
    ("head", "expected"), [row[:2] for row in META], ids=[row[0] for row in META]
)
def test_a_meta_element_speaks_about_its_page(head: str, expected: str) -> None:
    page = f"<html><head>{head}</head><body><p>Text</body></html>"
    assert verdicts(parse_html_signals(HTMLTree.parse(page), url=URL)) == expected


@pytest.mark.parametrize(
    ("head", "header", "expected"),
    [
        ('<link rel="license" type="application/rsl+xml" href="/l.xml">', "", [f"{URL}l.xml"]),
        ('<link rel="license" href="/l.html">', "", []),
        ("", '<https://b/l.xml>; rel="license"; type="application/rsl+xml"', ["https://b/l.xml"]),
        ("", '<l.xml>; rel=license; type="application/rsl+xml"', [f"{URL}l.xml"]),
        ("", '<https://b/l>; rel="license"', []),
        ("", '<a>; rel="next", <b>; rel="license"; type="application/rsl+xml"', [f"{URL}b"]),
    ],
)
def test_a_page_names_its_licence(head: str, header: str, expected: list[str]) -> None:
    statements = [
        *parse_header_signals({"link": [header]} if header else {}, url=URL),
        *parse_html_signals(HTMLTree.parse(f"<html><head>{head}</head></html>"), url=URL),
    ]
    assert license_urls(statements, "Bot") == expected


# tdmrep.json, path, verdicts; source
TDMREP = [
    (b'[{"location": "/", "tdm-reservation": 1}]', "/", "uurr", "TDMRep"),
    (b'[{"location": "/", "tdm-reservation": 0}]', "/", "uuuu", "TDMRep"),
    (b'[{"location": "/news/*", "tdm-reservation": 1}]', "/news/1", "uurr", "TDMRep"),
    (b'[{"location": "/news/*", "tdm-reservation": 1}]', "/blog", "uuuu", "TDMRep"),
    (b'[{"location": "/news/*", "tdm-reservation": 1}]', None, "uupp", "choice: part of the site"),
    (
        b'[{"location":"/","tdm-reservation":1},{"location":"/open/","tdm-reservation":0}]',
        "/open/a",
        "uurr",
        "TDMRep: the first rule counts",
    ),
    (
        b'[{"location":"/open/","tdm-reservation":0},{"location":"/","tdm-reservation":1}]',
        "/open/a",
        "uuuu",
        "TDMRep",
    ),
    (b'{"location": "/", "tdm-reservation": 1}', "/", "uurr", "choice: one bare rule"),
    (b'[{"location": "/", "tdm-reservation": true}]', "/", "uuuu", "TDMRep"),
    (b'[{"location": "/", "tdm-reservation": "1"}]', "/", "uuuu", "TDMRep"),
    (b'[{"tdm-reservation": 1}]', "/", "uuuu", "TDMRep: the location is mandatory"),
    (b'{"/": 1}', "/", "uuuu", "TDMRep"),
    (b"[]", "/", "uuuu", "TDMRep"),
    (b"<html>", "/", "uuuu", "TDMRep"),
    (b"[" * 100_000, "/", "uuuu", "TDMRep"),
    (b'[{"location": "/A/", "tdm-reservation": 1}]', "/a/", "uuuu", "TDMRep: case counts"),
    (b'[{"location": "/a$", "tdm-reservation": 1}]', "/a", "uurr", "TDMRep"),
]


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [row[:3] for row in TDMREP],
    ids=[f"{row[0][:60]!r} {row[1]}" for row in TDMREP],
)
def test_a_tdmrep_file_is_read_in_its_order(body: bytes, path: str | None, expected: str) -> None:
    assert verdicts(parse_tdmrep(body, source=f"{URL}tdmrep.json"), path=path) == expected


def test_the_page_beats_the_header_and_the_header_beats_the_file() -> None:
    file = parse_tdmrep(b'[{"location": "/", "tdm-reservation": 1}]', source="f")
    header = parse_header_signals({"tdm-reservation": ["0"]}, url=URL)
    meta = parse_html_signals(HTMLTree.parse('<meta name="tdm-reservation" content="1">'), url=URL)
    assert verdicts([*file, *header]) == "uuuu"
    assert verdicts([*file, *header], path=None) == "uupp"
    assert verdicts([*file, *header, *meta]) == "uurr"
    assert verdicts([*file, *header], path="/other") == "uurr"


def test_a_refusal_in_a_header_beats_a_grant_in_robots_txt_within_aipref() -> None:
    header = parse_content_usage("train-ai=n", source=f"{URL} Content-Usage", path="/$")
    robots = star("Content-Usage: train-ai=y")
    assert verdicts(header, robots=robots) == "uuur"


# ai.txt, path, verdict for ai_train; source
AI_TXT = [
    (b"# Spawning AI\nUser-Agent: *\nDisallow: /", "/", "r", "Spawning"),
    (b"User-agent: */\nDisallow: *.jpg", "/a.jpg", "r", "Spawning's plugin"),
    (b"User-agent: *\nDisallow: *.jpg", "/a.html", "u", "Spawning"),
    (b"User-agent: *\nDisallow: *.jpg", None, "p", "choice"),
    (b"User-agent: *\nAllow: /", "/", "u", "choice: no grant"),
    (b"User-agent: *\nDisallow: /\nAllow: *.html", "/a.html", "u", "choice"),
    (b"User-agent: other\nDisallow: /", "/", "u", "Spawning"),
    (b"Training: deny", "/", "u", "draft-car: another format, kept raw"),
    (b"<!doctype html><p>Disallow: /", "/", "u", "choice: a page, not the file"),
    (b"", "/", "u", "Spawning"),
    (b"\xff\xfe" + "Disallow: /".encode("utf-16-le"), "/", "r", "choice"),
]


@pytest.mark.parametrize(
    ("body", "path", "expected"), [row[:3] for row in AI_TXT], ids=[repr(row[0]) for row in AI_TXT]
)
def test_an_ai_txt_is_read_by_its_shape(body: bytes, path: str | None, expected: str) -> None:
    assert verdicts(parse_ai_txt(body, source=f"{URL}ai.txt"), path=path)[3] == expected


@pytest.mark.parametrize(
    ("body", "expected", "flags"),
    [
        (b"datatrainingallowed=no", "uuur", ()),
        (b"datatrainingallowed=yes", "uuua", ()),
        (b"member=https://x\ndatatrainingallowed=no # x", "uuur", ()),
        (b"datatrainingallowed=yes\ndatatrainingallowed=no", "uuur", ("conflict",)),
        (b"datatrainingallowed=maybe", "uuuu", ("unknown_value",)),
        (b"\xef\xbb\xbfdatatrainingallowed=no\r\n", "uuur", ()),
        (b"contact=x", "uuuu", None),
        (b"<html>datatrainingallowed=no", "uuuu", ("unreadable",)),
    ],
)
def test_a_trust_txt_states_whether_training_is_allowed(
    body: bytes, expected: str, flags: tuple[str, ...] | None
) -> None:
    statements = parse_trust_txt(body, source="t")
    assert verdicts(statements) == expected
    assert [one.flags for one in statements] == ([] if flags is None else [flags])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a", {"a": None}),
        ("a=?1, b=?0", {"a": None, "b": None}),
        ("a=1, b=-2.5", {"a": None, "b": None}),
        ('a="x\\"y"', {"a": None}),
        ("a=(b c);d", {"a": None}),
        ("a=:aGk=:", {"a": None}),
        ("a=@123", {"a": None}),
        ("a=b;c;d=e", {"a": "b"}),
        ("a=b\t,\tc=d", {"a": "b", "c": "d"}),
        ("a = b", None),
        ("A=b", None),
        ("a=", None),
        ("a=b,,c=d", None),
        (",a=b", None),
        ('a="x', None),
        ("a=b;", None),
        ("ä=n", None),
    ],
)
def test_a_dictionary_follows_rfc_9651(text: str, expected: dict[str, str | None] | None) -> None:
    assert parse_dictionary(text) == expected


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        (b"# Guide\n\n- [A](https://a.example/a.md): x", True),
        (b"\xef\xbb\xbf# Guide", True),
        (b"<!doctype html><h1>Not found</h1>", False),
        (b"plain text", False),
        (b"", False),
    ],
)
def test_an_llms_txt_is_markdown_with_a_heading(body: bytes, valid: bool) -> None:
    assert is_llms_txt(body) is valid


def test_a_security_txt_gives_its_contacts() -> None:
    body = b"contact: mailto:sec@a.example\r\nContact:https://a.example/report\nExpires: 2027"
    assert security_contacts(body) == ["mailto:sec@a.example", "https://a.example/report"]
    assert security_contacts(b"<html>") == []


def test_a_managed_block_is_recognised_in_any_case() -> None:
    body = b"# begin CLOUDFLARE managed Content\nUser-agent: *\nAllow: /"
    assert parse_robots_signals(body, source="r").managed
    assert not parse_robots_signals(b"User-agent: *", source="r").managed


def test_a_verdict_names_the_statement_that_led_to_it() -> None:
    robots = star("Content-Signal: ai-train=no")
    rules = Robots.parse(robots)
    purpose: Purpose = "ai_train"
    found = decide(
        parse_robots_signals(robots, source="https://a/robots.txt", rules=rules).statements,
        rules=rules,
        bot="GPTBot",
        purpose=purpose,
    )
    (finding,) = found.findings
    assert (finding.effect, finding.statement.raw) == ("refuse", "ai-train=no")
    assert finding.statement.source == "https://a/robots.txt"


INLINE = '<script type="application/rsl+xml">{}</script>'


def test_terms_inside_a_page_are_read() -> None:
    terms = RSL.format(LICENSE.format("/", '<prohibits type="usage">ai-train</prohibits>'))
    page = HTMLTree.parse(INLINE.format(f"\n{terms}\n"))
    assert verdicts(parse_html_signals(page, url=URL)) == "uuur"


def test_a_licence_binds_the_crawlers_whose_group_names_it() -> None:
    robots = b"License: https://a/1\nUser-agent: GPTBot\nLicense: https://a/2\nAllow: /\n"
    closed, opened = (
        '<prohibits type="usage">all</prohibits>',
        '<permits type="usage">all</permits>',
    )
    terms = [
        *parse_rsl(RSL.format(LICENSE.format("/", opened)).encode(), source="https://a/1"),
        *parse_rsl(RSL.format(LICENSE.format("/", closed)).encode(), source="https://a/2"),
    ]
    assert verdicts(terms, robots=robots, bot="ClaudeBot") == "aaaa"
    assert verdicts(terms, robots=robots, bot="GPTBot")[:3] == "rrr"
