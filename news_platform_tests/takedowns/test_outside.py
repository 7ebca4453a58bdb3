"""Dagster's own files: previews in events, and logs."""

import json
import sqlite3
from pathlib import Path

from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.outside import clean_file, find_files
from news_platform_tests.takedowns.asked import asked

URL = "https://harbour.example/news/one"
DOWN = Takedowns.of([asked("url", URL)])


def test_previews_of_events_are_blanked_and_the_events_stay(tmp_path: Path) -> None:
    table = (
        f"| address | title |\n| {URL} | A title |\n| https://o.example/ | B |\n"
        "| https://harbour.example/news/o… | A title |\n| https://harbour.example/old/o… | C |"
    )
    file = tmp_path / "history" / "runs" / "index.db"
    file.parent.mkdir(parents=True)
    with sqlite3.connect(file) as database:
        database.execute("create table event_logs (id integer primary key, event text)")
        events = [json.dumps({"metadata": {"newest": table}, "n": 1}), json.dumps({"n": 2})]
        database.executemany("insert into event_logs (event) values (?)", [(e,) for e in events])
    name = "history/runs/index.db"
    assert find_files(tmp_path, DOWN) == {name: 1}
    assert clean_file(tmp_path, name, DOWN).rows == 1
    assert find_files(tmp_path, DOWN) == {}
    assert b"harbour.example/news" not in file.read_bytes()
    with sqlite3.connect(file) as database:
        texts = [text for (text,) in database.execute("select event from event_logs")]
    kept = [json.loads(text) for text in texts]
    assert kept[1] == {"n": 2} and kept[0]["n"] == 1
    shown = kept[0]["metadata"]["newest"]
    assert "https://o.example/" in shown and shown.count("[taken down]") == 2
    assert "A title" not in shown and "https://harbour.example/old/o… | C" in shown


def test_lines_of_logs_are_blanked(tmp_path: Path) -> None:
    log = tmp_path / "storage" / "run.err"
    log.parent.mkdir()
    log.write_text(f"began\ncannot fetch {URL}?x=1\nended\n")
    assert find_files(tmp_path, DOWN) == {"storage/run.err": 1}
    clean_file(tmp_path, "storage/run.err", DOWN)
    assert log.read_text() == "began\n[taken down]\nended\n"


def test_more_requests_than_a_query_takes_are_blanked_and_a_longer_address_stays(
    tmp_path: Path,
) -> None:
    urls = [f"https://harbour.example/news/{number}" for number in range(2_000)]
    down = Takedowns.of([asked("url", *urls), asked("domain", "gone.example")])
    log = tmp_path / "run.log"
    log.write_text("a https://harbour.example/news/1999.\nb https://harbour.example/news/1999-b\n")
    file = tmp_path / "index.db"
    with sqlite3.connect(file) as database:
        database.execute("create table event_logs (id integer primary key, event text)")
        texts = [(json.dumps({"host": f"{name}.example"}),) for name in ("www.gone", "notgone")]
        database.executemany("insert into event_logs (event) values (?)", texts)
    assert find_files(tmp_path, down) == {"index.db": 1, "run.log": 1}
    for name in ("run.log", "index.db"):
        assert clean_file(tmp_path, name, down).rows == 1
    assert find_files(tmp_path, down) == {}
    assert log.read_text() == "[taken down]\nb https://harbour.example/news/1999-b\n"
    assert b"notgone.example" in file.read_bytes() and b"www.gone" not in file.read_bytes()
