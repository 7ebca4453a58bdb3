"""Lists of domains become research files."""

import json

import pytest

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.generated_research import (
    is_research_json,
    list_as_research,
    parse_domain_list,
)
from news_platform.errors import InputError

BATCH = PartitionInfo.of("de", "media", "2025-11-01")
OPML = (
    b'<opml version="2.0"><body><outline text="Group">'
    b'<outline text="A" xmlUrl="https://a.example/feed" htmlUrl="https://a.example/"/>'
    b'<outline text="B" xmlUrl="https://b.example/feed"/></outline></body></opml>'
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"a.example\nb.example\n", ["a.example", "b.example"]),
        (b"\xef\xbb\xbfa.example\r\n\r\n# a comment\r\nb.example", ["a.example", "b.example"]),
        (b"https://www.a.example/x", ["https://www.a.example/x"]),
        (b"domain,rank\na.example,1\nb.example,2\n", ["a.example", "b.example"]),
        (b'name;x,"url"\n"A, the first",https://a.example/\n', ["https://a.example/"]),
        (b"Rank\tDomain\n1\ta.example\n", ["a.example"]),
        (b"1,a.example\n2,b.example\n", ["a.example", "b.example"]),
        (b"a.example,x\nb.example,y\n", ["a.example", "b.example"]),
        (b"Name;Website\nA, the first;https://a.example/\n", ["https://a.example/"]),
        (b"name,homepage\nA,a.example\n", ["a.example"]),
        (b"name,origin\nA,https://a.example\n", ["https://a.example"]),
        (b"  # a comment\n\t# another\n  a.example\n", ["a.example"]),
        (OPML, ["https://a.example/", "https://b.example/feed"]),
    ],
)
def test_a_list_is_read_by_its_shape(body: bytes, expected: list[str]) -> None:
    assert parse_domain_list(body, name="list") == expected


def test_a_column_can_be_chosen() -> None:
    body = b"domain,owner\na.example,c.example\n"
    assert parse_domain_list(body, name="list", column="Owner") == ["c.example"]
    with pytest.raises(InputError, match="no column 'site' in 'list': it has domain, owner"):
        parse_domain_list(body, name="list", column="site")


def test_a_list_becomes_a_research_file() -> None:
    body = list_as_research(b"www.a.example\nhttps://b.example/news\n", BATCH, name="list.txt")
    document = json.loads(body)
    assert [one["normalized_domain"] for one in document["records"]] == ["a.example", "b.example"]
    assert document["meta"]["country"] == "de" and document["meta"]["record_count"] == 2
    assert is_research_json(body) and is_research_json(body.replace(b"\n", b""))
    assert not is_research_json(b"a.example") and not is_research_json(OPML)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'["a.example", "https://b.example/x"]', ["a.example", "b.example"]),
        (b'[{"Domain": "a.example"}, {"url": "https://b.example"}]', ["a.example", "b.example"]),
        (b'{"website": "a.example"}\n\n{"host": "b.example"}\n', ["a.example", "b.example"]),
        (b'\xef\xbb\xbf{"domain": "a.example"}', ["a.example"]),
        (b'"a.example"\n"b.example"\n', ["a.example", "b.example"]),
        (b'"Domain","Rank"\n"a.example","1"\n', ["a.example"]),
    ],
)
def test_a_json_array_and_json_lines_become_a_research_file(
    body: bytes, expected: list[str]
) -> None:
    assert not is_research_json(body)
    records = json.loads(list_as_research(body, BATCH, name="x"))["records"]
    assert [one["normalized_domain"] for one in records] == expected


def test_a_record_of_a_json_array_keeps_its_fields_and_one_without_a_domain_its_place() -> None:
    given = [{"raw_url": "https://www.a.example/x", "source_type": "gov"}, {"rank": 1}, 7]
    body = list_as_research(json.dumps(given).encode(), BATCH, name="x")
    assert json.loads(body)["records"] == [
        {**given[0], "discovery_method": "list"},  # type: ignore[dict-item]  # it is a dict
        {"rank": 1, "discovery_method": "list"},
        7,
    ]
    chosen = list_as_research(b'[{"owner": "c.example"}]', BATCH, name="x", column="Owner")
    assert json.loads(chosen)["records"][0]["normalized_domain"] == "c.example"


@pytest.mark.parametrize("body", [b"[1", b'{"domain": "a.example"}\n{"domain"\n', b"[" * 100_000])
def test_damaged_json_is_named(body: bytes) -> None:
    with pytest.raises(InputError, match="invalid JSON in 'x'"):
        list_as_research(body, BATCH, name="x")


@pytest.mark.parametrize("body", [b"", b"[]", b"hello\nworld", b"\x00\x01", b"<opml/>"])
def test_a_file_without_domains_is_refused(body: bytes) -> None:
    with pytest.raises(InputError, match="no domain in 'x'"):
        list_as_research(body, BATCH, name="x")
