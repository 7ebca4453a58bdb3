"""`news-platform records`: segment files, explain every block, build what is out of date."""

import json
from pathlib import Path

import pytest

from news_platform.errors import InputError
from news_platform_tests.cli.runner import Commands
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE

RECORDS = Commands("records")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Return a stored Firecrawl response."""
    metadata = {"url": "https://u1.edu/depts", "cachedAt": "2025-10-01T08:00:00Z"}
    file = tmp_path / "depts.json"
    file.write_text(
        json.dumps({"success": True, "data": {"html": DEPARTMENTS, "metadata": metadata}})
    )
    return file


def test_records_go_out_as_json_lines(snapshot: Path, tmp_path: Path) -> None:
    done = RECORDS.run(tmp_path, "segment", str(snapshot), "--institution", "u1", "--lang", "en")
    assert done.exit_code == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["text"] for line in lines] == [
        "Computer Science",
        "Electrical & Computer Engineering",
    ]
    assert lines[0]["provenance"] == {
        "institution": "u1",
        "url": "https://u1.edu/depts",
        "section": "Departments",
        "section_path": ["Departments"],
        "fetched_at": "2025-10-01T08:00:00+00:00",
    }
    assert lines[0]["meta"]["hints"] == {"marker": "-"}


def test_explain_prints_every_block_with_its_fate(snapshot: Path, tmp_path: Path) -> None:
    done = RECORDS.run(tmp_path, "segment", str(snapshot), "--institution", "u1", "--explain")
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()[1:]]
    assert [(line[0], line[2]) for line in lines] == [
        ("attached", "Departments"),
        ("kept", "Computer Science"),
        ("kept", "Electrical & Computer Engineering"),
        ("navigation_item", "Admissions  ['admissions' is in navigation_items]"),
        ("footer", "© 2025 University  [never content]"),
    ]


def test_options_choose_the_language_headings_and_tables(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(FULL_PAGE)
    given = ("segment", str(file), "--institution", "u1", "--url", "https://u1.edu/f")
    plain = RECORDS.run(tmp_path, *given).stdout
    assert json.loads(plain.splitlines()[0])["provenance"]["url"] == "https://u1.edu/f"
    headed = RECORDS.run(tmp_path, *given, "--headings", "records", "--tables", "structure").stdout
    assert '"text": "Faculty of Engineering"' in headed
    assert '"| Office | Opening hours |\\n' in headed
    assert RECORDS.run(tmp_path, *given, "--lang", "de").stdout.strip() == ""


def test_a_failed_page_is_reported_after_the_others(snapshot: Path, tmp_path: Path) -> None:
    failed = tmp_path / "failed.json"
    failed.write_text('{"success": false, "error": "blocked"}')
    done = RECORDS.run(tmp_path, "segment", str(failed), str(snapshot), "--institution", "u1")
    assert isinstance(done.exception, InputError)
    assert "the crawler failed: blocked" in str(done.exception)
    lost, *found = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lost["text"], lost["meta"]["error"]) == ("", "the crawler failed: blocked")
    assert len(found) == 2


def test_build_cuts_what_is_out_of_date(snapshot: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    place = root / "snapshots" / "institution=u1" / "depts.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(snapshot.read_bytes())
    done = RECORDS.run(root, "build")
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == "u1: 1 pages, 0 failed, 0 without records, 2 of 4 blocks kept"
    assert RECORDS.run(root, "build").stdout.strip() == "up to date"
    again = RECORDS.run(root, "build", "--institution", "u1", "--json")
    assert json.loads(again.stdout)[0]["blocks_kept"] == 2
    assert isinstance(RECORDS.run(root, "build", "--institution", "u2").exception, InputError)
    assert RECORDS.run(root, "changes").stdout.strip() == "no changes"


def test_changes_shows_what_differs_between_snapshots(snapshot: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    place = root / "snapshots" / "institution=u1" / "depts.json"
    place.parent.mkdir(parents=True)
    text = snapshot.read_text()
    place.write_text(text)
    RECORDS.run(root, "build")
    document = json.loads(text.replace("Computer Science", "Computer Science and Design"))
    document["data"]["metadata"]["fetched_at"] = "2999-11-01T00:00:00Z"
    place.with_name("later.json").write_text(json.dumps(document))
    assert RECORDS.run(root, "build").stdout.strip().endswith("1 differ in new snapshots")
    shown = RECORDS.run(root, "changes", "--institution", "u1", "--since", "2999-11-01").stdout
    assert shown.splitlines()[1:] == [
        "  - Computer Science",
        "  + Computer Science and Design",
    ]
    [found] = RECORDS.json(root, "changes")
    assert (found["change"], found["section"]) == ("changed", "Departments")
    assert RECORDS.json(root, "changes", "--url", "https://u1.edu/other") == []
