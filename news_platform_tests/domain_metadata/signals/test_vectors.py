"""Vectors for every signal: what a site sends, and the verdict that must follow.

The vectors are in `vectors.json`. Each has its inputs, what must follow (the first letters of the
verdicts for index, search, ai_input and ai_train) and the source of that expectation:
`RFC 9309`, `AIPREF` (attach-05, vocab-08), `CS` (Cloudflare's content signals policy), `RSL` (RSL
1.0), `TDMRep` (the W3C community report of 2024), `Google` (its robots meta specification),
`DeviantArt` (noai), `Spawning` (ai.txt), `JournalList` (trust.txt), or `choice` where no source
decides: then restrictions are read leniently and grants strictly.
"""

import json
from collections.abc import Sequence
from pathlib import Path

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
VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))
# Bytes that are not UTF-8 are escaped in the file.
FILES = ("robots", "body")


def vectors(table: str, names: Sequence[str]) -> pytest.MarkDecorator:
    """Run a test with every vector of a table; files that a site sends are bytes."""
    rows = [dict(zip(names, row, strict=False)) for row in VECTORS[table]]
    values = [
        tuple(
            value.encode("utf-8", "surrogateescape") if name in FILES else value
            for name, value in row.items()
        )
        for row in rows
    ]
    return pytest.mark.parametrize(names, values)


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


@vectors("robots", ("robots", "bot", "path", "expected"))
def test_a_robots_txt_is_read_as_its_sources_say(
    robots: bytes, bot: str, path: str | None, expected: str
) -> None:
    assert verdicts([], robots=robots, bot=bot, path=path) == expected


@pytest.mark.parametrize("written", ["/café", "/caf%C3%A9"])
@pytest.mark.parametrize("asked", ["/café/1", "/caf%C3%A9/1"])
def test_letters_outside_ascii_are_compared_however_they_are_written(
    written: str, asked: str
) -> None:
    assert verdicts([], robots=star(f"Disallow: {written}"), path=asked) == "rrrr"
    rule = json.dumps([{"location": written, "tdm-reservation": 1}]).encode()
    assert verdicts(parse_tdmrep(rule, source="t"), path=asked) == "uurr"


RSL = '<rsl xmlns="https://rslstandard.org/rsl">{}</rsl>'
LICENSE = '<content url="{}"><license>{}</license></content>'
LICENSE_URL = "https://a.example/license.xml"
NAMED = UseStatement("rsl", "robots.txt", LICENSE_URL, "license", LICENSE_URL)


def rsl(terms: str, *, url: str = "/") -> list[UseStatement]:
    """Return the statements of a licence with one content element, and of the line naming it."""
    body = RSL.format(LICENSE.format(url, terms)).encode()
    return [NAMED, *parse_rsl(body, source=LICENSE_URL)]


@vectors("licences", ("terms", "path", "expected"))
def test_a_licence_is_read_as_rsl_says(terms: str, path: str, expected: str) -> None:
    assert verdicts(rsl(terms), path=path) == expected


def test_the_longest_path_of_a_licence_counts() -> None:
    body = RSL.format(
        LICENSE.format("/", '<prohibits type="usage">all</prohibits>')
        + LICENSE.format("/open/", '<permits type="usage">all</permits>')
    ).encode()
    statements = [NAMED, *parse_rsl(body, source=LICENSE_URL)]
    assert verdicts(statements, path="/open/1") == "aaaa"
    assert verdicts(statements, path="/closed") == "rrrr"


@vectors("not_licences", ("body", "flag"))
def test_a_document_that_is_not_a_licence_says_nothing(body: bytes, flag: str) -> None:
    statements = parse_rsl(body, source="l")
    assert [flag in one.flags for one in statements] == [True]
    assert verdicts(statements) == "uuuu"


def test_a_licence_that_is_named_no_longer_binds_nobody() -> None:
    assert verdicts(rsl('<prohibits type="usage">all</prohibits>')[1:]) == "uuuu"


def test_a_foreign_element_in_a_licence_is_ignored() -> None:
    other = '<x xmlns="https://other.example/">?</x>'
    assert verdicts(rsl(f'{other}<permits type="usage">search</permits>')) == "aarr"


@vectors("licence_lines", ("robots", "agent", "expected"))
def test_the_licence_of_the_selected_group_replaces_the_global_one(
    robots: bytes, agent: str, expected: list[str]
) -> None:
    statements = parse_robots_signals(robots, source="robots.txt").statements
    assert license_urls(statements, agent) == expected


@vectors("headers", ("headers", "expected"))
def test_a_header_speaks_about_its_page(headers: dict[str, list[str]], expected: str) -> None:
    statements = parse_header_signals(headers, url=URL)
    assert verdicts(statements) == expected
    assert verdicts(statements, path="/another/page") == "uuuu"


@vectors("meta", ("head", "expected"))
def test_a_meta_element_speaks_about_its_page(head: str, expected: str) -> None:
    page = f"<html><head>{head}</head><body><p>Text</body></html>"
    assert verdicts(parse_html_signals(HTMLTree.parse(page), url=URL)) == expected


@vectors("page_licences", ("head", "header", "expected"))
def test_a_page_names_its_licence(head: str, header: str, expected: list[str]) -> None:
    statements = [
        *parse_header_signals({"link": [header]} if header else {}, url=URL),
        *parse_html_signals(HTMLTree.parse(f"<html><head>{head}</head></html>"), url=URL),
    ]
    assert license_urls(statements, "Bot") == expected


@vectors("tdmrep", ("body", "path", "expected"))
def test_a_tdmrep_file_is_read_in_its_order(body: bytes, path: str | None, expected: str) -> None:
    assert verdicts(parse_tdmrep(body, source=f"{URL}tdmrep.json"), path=path) == expected


@pytest.mark.parametrize(
    ("lines", "reserved", "expected"),
    [
        (["Disallow: /search"], {"/": 1}, "pprr"),
        (["Disallow: /search"], {"/press/": 0, "/": 1}, "pppp"),
        (["Disallow: /press/"], {"/press/": 0, "/": 1}, "pprr"),
        (["Disallow: /", "Allow: /press/"], {"/press/": 1}, "pprr"),
        (["Disallow: /", "Allow: /press/", "Allow: /$"], {"/press/": 1}, "pppp"),
        (["Disallow: /*", "Allow: /"], {}, "rrrr"),
        (["Disallow: /p/", "Content-Signal: ai-train=yes"], {"/": 1}, "pprc"),
    ],
)
def test_a_site_is_refused_where_every_page_is_by_whichever_statement(
    lines: list[str], reserved: dict[str, int], expected: str
) -> None:
    rules = [{"location": path, "tdm-reservation": one} for path, one in reserved.items()]
    file = parse_tdmrep(json.dumps(rules).encode(), source="t")
    assert verdicts(file, robots=star(*lines), path=None) == expected


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


@vectors("ai_txt", ("body", "path", "expected"))
def test_an_ai_txt_is_read_by_its_shape(body: bytes, path: str | None, expected: str) -> None:
    assert verdicts(parse_ai_txt(body, source=f"{URL}ai.txt"), path=path)[3] == expected


@vectors("trust_txt", ("body", "expected", "flags"))
def test_a_trust_txt_states_whether_training_is_allowed(
    body: bytes, expected: str, flags: list[str] | None
) -> None:
    statements = parse_trust_txt(body, source="t")
    assert verdicts(statements) == expected
    assert [list(one.flags) for one in statements] == ([] if flags is None else [flags])


@vectors("dictionaries", ("text", "expected"))
def test_a_dictionary_follows_rfc_9651(text: str, expected: dict[str, str | None] | None) -> None:
    assert parse_dictionary(text) == expected


@vectors("llms_txt", ("body", "valid"))
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
