"""Opt-out lists: files to versions of a named request, the difference, and the scope `export`."""

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import news_platform
from news_platform.cli.main import main
from news_platform.datasets.takedowns import TakedownScope
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.lists import BadList, new_version, newest_version, parse_list
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import (
    TakedownTerms,
    add_request,
    read_states,
    withdraw_request,
)
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.asked import NOW, ask
from news_platform_tests.takedowns.sample_root import SampleRoot, kill_after

ENTRIES = (
    "a.example",
    "https://b.example/2019/*",
    "https://c.example/one",
    "xn--mnchen-3ya.example",
)
LISTS = {
    "list.txt": """# sent by the association
a.example
https://www.a.example/   # once more, as the address of the site
*.a.example
b.example/2019/*

https://c.example/one#top
MÜNCHEN.example ; with an umlaut
""",
    "bom_and_windows": "\ufeff" + "\r\n".join(["a.example", "b.example/2019/*", *ENTRIES[2:]]),
    "header.csv": 'name,URL,domain\n"A, B",,a.example\n# a comment\n,b.example/2019/*,\n'
    ",https://c.example/one,\n,,münchen.example\n",
    "plain.csv": "a.example;x\nhttps://b.example/2019/*;y\nc.example/one;\nmünchen.example;\n",
    "strings.json": json.dumps(["a.example", "b.example/2019/*", *ENTRIES[2:]]),
    "objects.json": json.dumps(
        [
            {"domain": "www.a.example", "note": "x"},
            {"prefix": "https://b.example/2019/"},
            {"url": "https://c.example/one"},
            {"value": "münchen.example"},
        ]
    ),
    "groups.json": json.dumps(
        {
            "domains": ["a.example"],
            "prefixes": ["https://b.example/2019/"],
            "urls": ["https://c.example/one"],
            "entries": ["münchen.example"],
        }
    ),
}


@pytest.mark.parametrize("file", LISTS)
def test_a_list_is_read_from_text_csv_and_json(file: str) -> None:
    assert parse_list(LISTS[file].encode(), file=file) == ENTRIES


@pytest.mark.parametrize(
    ("file", "body", "named"),
    [
        ("x", b"a.example\nco.uk\n", "line 2"),
        ("x", b"a.example\n\n# x\nlocalhost\n", "line 4"),
        ("x", b"*\n", "line 1"),
        ("x", b"*.com\n", "line 1"),
        ("x", b"a.*.example\n", "line 1"),
        ("x", b"mailto:me@a.example\n", "line 1"),
        ("x", b"me@a.example\n", "line 1"),
        ("x", b"a b.example\n", "line 1"),
        ("x", b"127.0.0.1\n", "line 1"),
        ("x", b"https://a.example/?q=*\n", "line 1"),
        ("x", b"ftp://a.example/x\n", "line 1"),
        ("x", b"a.example\nb\xff.example\n", "line 2"),
        ("x", b"a\0b.example\n", "line 1"),
        ("x", b"User-agent: GPTBot\nDisallow: /\n", "line 1"),
        ("x", ("x" * 5_000 + ".example\n").encode(), "line 1"),
        ("x.csv", b"domain\na.example\n-\n", "line 3"),
        ("x.csv", b"domain\nhttps://a.example/one\n", "line 2"),
        ("x.csv", b'domain\n"' + b"a" * 200_000, "line"),
        ("x.json", b"[1]", "entry 1"),
        ("x.json", b'["a.example", null, "b.example"]', "entry 2"),
        ("x.json", b'["a.example"', "not JSON"),
        ("x.json", b"[" * 100_000, "not JSON"),
        ("x", b"", "empty"),
        ("x", b"# nothing\n", "empty"),
        ("x.json", b'{"other": ["a.example"]}', "empty"),
    ],
)
def test_a_bad_line_is_named(file: str, body: bytes, named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse_list(body, file=file)


def test_all_bad_lines_are_named_and_any_bytes_are_read_or_refused() -> None:
    with pytest.raises(BadList) as caught:
        parse_list(b"co.uk\na.example\nx\n", file="x")
    assert [line.partition(":")[0] for line in caught.value.lines] == ["line 1", "line 3"]
    draw = random.Random(36)
    pieces = [
        *map(str.encode, LISTS.values()),
        b"\xff\0\"'{[*/\\@:#\n",
        "ｅｘ。ample\u202e".encode(),
    ]
    for _ in range(300):
        body = b"".join(draw.choice(pieces)[draw.randrange(9) :][:40] for _ in range(4))
        for file in ("x", "x.csv", "x.json"):
            try:
                assert parse_list(body, file=file)
            except InputError:
                continue


def _import(store: ObjectStore, name: str, *values: str, scope: str = "both") -> str:
    terms = TakedownTerms("x", scope=TakedownScope(scope))
    before = newest_version(store, name)
    request, _ = new_version(name, values, before=before, terms=terms, now=NOW)
    assert add_request(store, request)
    return request.id


def test_the_newest_version_counts_alone(local_store: ObjectStore) -> None:
    _import(local_store, "papers", "a.example", "b.example")
    before = newest_version(local_store, "papers")
    request, changes = new_version(
        "papers", ("b.example", "c.example"), before=before, terms=TakedownTerms("x"), now=NOW
    )
    assert (changes.added, changes.removed) == (("c.example",), ("a.example",))
    add_request(local_store, request)
    found = Takedowns.read(local_store)
    assert found.domains == {"b.example", "c.example"}
    assert found.list_versions() == (("papers", 2),)
    # An older version does not return when the newest is withdrawn.
    withdraw_request(local_store, "papers@2", reason="", now=NOW)
    assert not Takedowns.read(local_store)
    assert _import(local_store, "papers", "a.example") == "papers@3"


def test_a_list_for_exports_is_kept_and_the_strictest_holds(local_store: ObjectStore) -> None:
    _import(local_store, "archive", "a.example", "b.example", scope="export")
    ask(local_store, "domain", "c.example")
    ask(local_store, "domain", "f.example", terms=TakedownTerms("x", scope=TakedownScope.future))
    for use in ("collection", "removal", "export"):
        found = Takedowns.read(local_store, use=use)
        assert found.covers("https://a.example/") is (use == "export")
        assert found.covers_export("https://a.example/")
        assert found.covers_export("https://c.example/")
        # It is not collected any more; what is stored may be exported.
        assert not found.covers_export("https://f.example/")
        assert found.list_versions() == (("archive", 1),)
    _import(local_store, "strict", "a.example")
    removing = Takedowns.read(local_store, use="removal")
    assert removing.domains == {"a.example", "c.example"}
    withdraw_request(local_store, "archive@1", reason="", now=NOW)
    found = Takedowns.read(local_store)
    assert found.covers_export("https://a.example/") and not found.covers_export(
        "https://b.example"
    )
    assert found.list_versions() == (("strict", 1),)


@pytest.fixture(scope="module")
def root(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the demo."""
    return finished_demo.copy(tmp_path_factory.mktemp("lists") / "copy").root


def _run(root: Path, *words: str, exit_code: int = 0) -> str:
    done = CliRunner().invoke(
        main, [*words, "--root", str(root)], env={"NEWS_PLATFORM_SAMPLE": "1"}
    )
    assert done.exit_code == exit_code, done.output
    return f"{done.output}{done.exception or ''}"


DOMAIN, OTHER = "northmoor.example", "tidewater.example"
EXPORTS = [("rss", "export"), ("rss", "export", "--delta", "0"), ("rss", "export", "--opml")]


def _exported(root: Path) -> Iterator[str]:
    """Yield the addresses in each export; texts of other sites may link to the domain."""
    for words in EXPORTS:
        text = _run(root, *words)
        yield "\n".join(
            re.findall(r'(?:"article_url"|"article_url_canon"|xmlUrl)[:=] ?"(.+?)"', text)
        )
    folder = root.parent / f"export-{random.random()}"
    _run(root, "corpus", "export", "--output", str(folder))
    for place in (folder, root / "training_export"):
        yield "\n".join(pl.read_parquet(sorted(place.rglob("*.parquet")), columns=["url"])["url"])


def test_a_list_goes_from_import_to_withdrawal(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "papers.txt"
    assert all(DOMAIN in text for text in _exported(root))
    rows = len(_run(root, "search", "the", "--domain", DOMAIN, "--json"))
    file.write_text(f"{DOMAIN}\nnobody.example\n")
    shown = _run(root, "takedown", "import", str(file), "--list", "papers", "--dry-run", "--json")
    assert json.loads(shown)["coverage"]["domains"] == 1 and _run(root, "takedown", "lists")
    command = ("takedown", "import", str(file), "--list", "papers")
    assert "papers@1: 2 entries, 2 added" in _run(root, *command, "--scope", "export")
    assert "papers@1: unchanged" in _run(root, *command)
    assert "is a domain: write `--domain" in _run(
        root, "takedown", "add", DOMAIN, "--reason", "x", exit_code=1
    )
    (listed,) = json.loads(_run(root, "takedown", "lists", "--json"))
    assert listed["source"] == "papers.txt" and listed["scope"] == "export"
    assert listed["rows"] > listed["domains"] == 1 and listed["bytes"] > 1_000
    assert _run(root, "takedown", "verify", exit_code=1).count("training_export") > 0
    _run(root, "takedown", "apply")
    assert not any(DOMAIN in text for text in _exported(root))
    assert "nothing taken down is stored" in _run(root, "takedown", "verify")
    # It is kept, and readers of the archive see it.
    assert len(_run(root, "search", "the", "--domain", DOMAIN, "--json")) == rows
    # A newer version has the scope of the one before.
    file.write_text(f"{OTHER}\n")
    assert f"+ {OTHER}\n- {DOMAIN}\n" in _run(root, *command)
    _run(root, "takedown", "apply")
    assert all(DOMAIN in text and OTHER not in text for text in _exported(root))
    _run(root, "takedown", "withdraw", "papers")
    _run(root, "takedown", "apply")
    assert all(DOMAIN in text and OTHER in text for text in _exported(root))


def test_a_bad_list_changes_nothing(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text("harbour.example\nco.uk\nx\n")
    before = sorted(path for path in (root / "takedowns").rglob("*"))
    shown = _run(root, "takedown", "import", str(file), "--list", "bad", exit_code=1)
    assert "line 2" in shown and "line 3" in shown
    assert sorted(path for path in (root / "takedowns").rglob("*")) == before


def test_an_import_that_is_killed_is_whole_or_absent(root: Path, tmp_path: Path) -> None:
    file, draw = tmp_path / "many.txt", random.Random(int(os.environ.get("SEED", "7")))
    file.write_text("\n".join([OTHER, *(f"site{n}.example" for n in range(10_000))]))
    sample = SampleRoot.in_folder(root)
    for name in ("first", "second", "third"):
        started = sample.start("takedown", "import", str(file), "--list", name)
        kill_after(started, draw.uniform(1, 3))
    for state in read_states(sample.store):
        assert len(state.request.values) in (1, 10_001)
    sample.run("takedown", "import", str(file), "--list", "first")
    kill_after(sample.start("takedown", "apply"), draw.uniform(1, 4))
    sample.apply()
    found = sample.verified()
    assert found.is_clean and found.files > 500
    rows = news_platform.open(root).sql("select distinct domain from all_articles")["domain"]
    assert OTHER not in rows.to_list() and DOMAIN in rows.to_list()
