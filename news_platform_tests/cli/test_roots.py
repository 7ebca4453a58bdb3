"""Roots that do not exist, are not folders or have odd names: one line, and nothing is created."""

import json
from pathlib import Path

import pytest

from news_platform_tests.cli.runner import invoke

READING = [
    ("ccnews", "status"),
    ("domains", "fetch"),
    ("records", "build"),
    ("rss", "poll"),
    ("sql", "select 1 from domain_catalog"),
    ("store", "build"),
]


def _is_one_line(error: str) -> bool:
    return error.startswith("error: ") and error.count("\n") == 1


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_mistyped_root_is_named_and_not_created(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "typo"
    code, error, _ = invoke(capsys, *words, "--root", str(root))
    assert code == 2
    assert _is_one_line(error) and "there is no data at" in error and "typo" in error
    assert not root.exists()


def test_a_folder_without_our_data_is_not_read_as_a_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("Dear editor")
    code, error, _ = invoke(capsys, "rss", "status", "--root", str(tmp_path))
    assert code == 2 and _is_one_line(error) and "there is no data at" in error
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_of_files_placed_by_hand_can_be_read_but_gets_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "snapshots").mkdir()
    assert invoke(capsys, "ccnews", "status", "--root", str(tmp_path))[0] == 0
    code, error, _ = invoke(capsys, "rss", "status", "--root", str(tmp_path))
    assert code == 2 and _is_one_line(error) and "is not a root" in error
    assert [path.name for path in tmp_path.iterdir()] == ["snapshots"]
    assert invoke(capsys, "records", "build", "--root", str(tmp_path))[0] == 0
    assert (tmp_path / "root.json").exists()


@pytest.mark.parametrize("words", [("rss", "ensure"), ("ccnews", "status")], ids=" ".join)
@pytest.mark.parametrize("root", ["dangling/below", "/proc/self", "loop", "~nouser/x"])
def test_a_root_that_cannot_be_a_folder_ends_with_one_line(
    words: tuple[str, ...],
    root: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    monkeypatch.chdir(tmp_path)
    code, error, _ = invoke(capsys, *words, "--root", root)
    assert code in (1, 2) and _is_one_line(error), error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "loop"]


@pytest.mark.parametrize("name", ["%2e%2e/x", "a?b=c#d", "ünï:@cödé"])
def test_the_ledger_lies_inside_a_root_of_any_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "parent" / name
    code, *_ = invoke(capsys, "rss", "ensure", "--root", str(root))
    assert code == 0
    ledgers = [path for path in tmp_path.rglob("ledger.sqlite")]
    assert ledgers == [root / "ledger.sqlite"]
    assert len(list((tmp_path / "parent").iterdir())) == 1


@pytest.mark.parametrize("root", ["", "file://host/x", "a\nb", "r\udcff"])
def test_a_root_without_a_usable_name_is_refused(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        code, error, _ = invoke(capsys, "rss", "ensure", "--root", root)
    assert code == 2 and "rror: " in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<opml><body><outline", "lists no feeds"),
        ("<html><body>502</body></html>", "expected the root element <opml>"),
    ],
)
def test_a_broken_opml_file_is_refused_instead_of_the_roots_own_candidates(
    body: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.opml"
    file.write_text(body)
    words = ("rss", "discovery", "--opml", str(file), "--root", str(tmp_path / "root"))
    code, error, _ = invoke(capsys, *words)
    assert code == 1
    assert _is_one_line(error) and "broken.opml" in error and reason in error
    assert not (tmp_path / "root").exists()


def test_a_truncated_opml_file_is_read_with_a_warning_that_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cut.opml"
    first = '<outline xmlUrl="http://127.0.0.1:9/rss"/>'
    file.write_text(f'<opml version="2.0">\n<body>\n{first}\n<outline xmlUrl="http://127.0.0.1:9/f')
    words = ("rss", "discovery", "--opml", str(file), "--root", str(tmp_path / "root"), "--json")
    code, error, out = invoke(capsys, *words)
    document = json.loads(out)
    assert code == 1  # the one feed that is left cannot be reached
    assert error.startswith("warning: ") and error.count("\n") == 2
    assert "cut.opml" in error and "line 4, column" in error and "1 feed is read" in error
    assert document["candidates"] == 1 and document["opml_errors"] == 3
