"""`news-platform feeds` against a real server on loopback, opened by NEWS_PLATFORM_WEB_ALLOW."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from news_platform.web.opml import OpmlFeed, opml_document, opml_entries
from news_platform_tests.cli.runner import Commands
from news_platform_tests.rss.http_site import serve
from news_platform_tests.rss.web import items, page, rss
from news_platform_tests.web.site import after, body, serve_in_thread

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Newsroom:
    """Runs commands over one root; `site` is the address of its server, with these pages."""

    root: Path
    site: str
    pages: dict[str, bytes]

    def text(self, *words: str, group: str = "feeds") -> str:
        return Commands(group).text(self.root, *words)

    def json(self, *words: str, group: str = "feeds") -> Any:
        return Commands(group).json(self.root, *words)

    def error(self, *words: str) -> str:
        return Commands("feeds").error(self.root, *words)


@pytest.fixture
def newsroom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newsroom]:
    pages: dict[str, bytes] = {}
    with serve(pages) as (host, port):
        links = items(["a", "b"], newest=NOW - timedelta(hours=1))
        here = [(url.replace("https://post.example", f"http://{host}:{port}"), t, at)
                for url, t, at in links]  # fmt: skip
        for name in ("one", "two", "three"):
            pages[f"/{name}.xml"] = rss(here, title=f"The {name}")
        pages |= {"/a": page("the bridge"), "/b": page("the park"), "/robots.txt": b""}
        pages["/old.xml"] = rss(items(["a"], newest=NOW - timedelta(days=40)))
        monkeypatch.setenv("NEWS_PLATFORM_WEB_ALLOW", f"{host}:{port}")
        yield Newsroom(tmp_path / "root", f"http://{host}:{port}", pages)


def test_a_feed_is_added_listed_shown_paused_resumed_and_removed(newsroom: Newsroom) -> None:
    url = f"{newsroom.site}/one.xml"
    added = newsroom.json("add", url, "--group", "Towns/North", "--interval", "600")
    assert (added["added"], added["outcomes"]) == (1, {"active": 1})
    (listed,) = newsroom.json("list", "--group", "Towns")
    assert (listed["feed_url"], listed["feed_group"]) == (url, "Towns/North")
    assert listed["settings"] == {"interval_seconds": 600}
    assert "no group 'Towsn': did you mean 'Towns'" in newsroom.error("list", "--group", "Towsn")
    assert url in newsroom.text("list")
    newsroom.text("poll", group="rss")
    newsroom.text("work", "--worker-id", "w", group="rss")
    shown = newsroom.json("show", "one.xml")
    assert shown["articles"] == {"stored": 2}
    assert [poll["outcome"] for poll in shown["polls"]] == ["read"]
    assert newsroom.json("pause", url)["status"] == "paused"
    assert newsroom.json("poll", group="rss")["feeds"] == 0
    assert newsroom.json("resume", url)["status"] == "active"
    assert newsroom.json("remove", url)["status"] == "retired"
    assert newsroom.json("show", url)["articles"] == {"stored": 2}
    assert newsroom.json("list", "--status", "active") == []


def test_a_feed_that_is_not_accepted_says_why_and_can_be_added_anyway(newsroom: Newsroom) -> None:
    url = f"{newsroom.site}/old.xml"
    assert "stale" in Commands("feeds").run(newsroom.root, "add", url).stdout
    shown = newsroom.text("why", url)
    assert shown.endswith("last polls: none\n")
    assert "discovery says stale: its newest entry is older than FRESH_DAYS_LIMIT" in shown
    assert "it is checked again at" in shown
    assert "--force" in newsroom.error("resume", url)
    assert newsroom.json("add", url, "--force")["revived"] == 1
    why = newsroom.json("why", url)
    assert why["status"] == "active"
    assert why["reasons"] == ["it has not been polled yet"]


def test_why_tells_what_the_last_polls_gave(newsroom: Newsroom) -> None:
    url = f"{newsroom.site}/one.xml"
    newsroom.text("add", url)
    for _ in range(2):
        newsroom.text("poll", group="rss")
    why = newsroom.json("why", url)
    assert [poll["status_code"] for poll in why["polls"]] == [304, 200]
    assert "its last response was the same as the one before" in why["reasons"]
    assert any("wait to be fetched" in reason for reason in why["reasons"])
    assert "usual gap every 60 minutes" in why["rhythm"]
    assert "its next poll is at" in why["next_step"]


def test_opml_and_csv_are_read_and_written_with_groups(newsroom: Newsroom, tmp_path: Path) -> None:
    listed = [
        OpmlFeed(f"{newsroom.site}/one.xml", "The one", "Towns"),
        OpmlFeed(f"{newsroom.site}/two.xml", "The two", "Towns/North"),
    ]
    source = tmp_path / "in.opml"
    source.write_text(opml_document(listed))
    assert newsroom.json("import", str(source))["added"] == 2
    written = newsroom.text("export")
    assert opml_entries(written.encode()) == tuple(listed)
    newsroom.text("set", "two.xml", "--user-agent", "Reader/1", "--header", "X-Key: 1")
    newsroom.text("pause", "one.xml")
    table = tmp_path / "out.csv"
    assert newsroom.json("export", "--output", str(table))["feeds"] == 2
    other = Newsroom(tmp_path / "other", newsroom.site, {})
    assert other.json("import", str(table))["added"] == 2
    first, second = other.json("list")
    assert (first["status"], first["feed_group"]) == ("paused", "Towns")
    assert second["settings"]["user_agent"] == "Reader/1"
    assert second["settings"]["headers"] == {"X-Key": "1"}
    assert other.text("export", "--format", "csv").splitlines() == (table.read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "nothing.xml"), "there is no feed 'nothing.xml'"),
        (("show", "xml"), "fits 2 feeds, such as"),
        (("set", "one.xml", "--token", "AWS_SECRET"), "starts with FEED_SECRET_"),
        (("set", "one.xml", "--header", "Host: a"), "invalid header"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    newsroom: Newsroom, words: tuple[str, ...], message: str
) -> None:
    newsroom.text("add", f"{newsroom.site}/one.xml", f"{newsroom.site}/two.xml")
    shown = newsroom.error(*words)
    assert message in shown
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("a.csv", b"url\nhttp://a.example/", "unknown column 'url'"),
        ("a.csv", b"feed_url,interval_seconds\nhttp://a.example/,soon", "line 2, column"),
        ("a.opml", b"<html/>", "not an OPML file"),
    ],
)
def test_a_file_that_lists_no_feeds_is_refused(
    newsroom: Newsroom, tmp_path: Path, name: str, body: bytes, message: str
) -> None:
    file = tmp_path / name
    file.write_bytes(body)
    assert message in newsroom.error("import", str(file))


def opml(*urls: str, folder: str = "Europe/Spain") -> bytes:
    outlines = "".join(f'<outline xmlUrl="{url}"/>' for url in urls)
    body = f'<outline text="{folder}">{outlines}</outline>'
    return f'<opml version="2.0"><body>{body}</body></opml>'.encode()


def test_an_import_that_reaches_no_feed_stores_them_and_fails(
    newsroom: Newsroom, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("NEWS_PLATFORM_WEB_ALLOW", place)
        file = tmp_path / "feeds.opml"
        file.write_bytes(opml(*(f"http://{place}/{n}" for n in range(30))))
        done = Commands("feeds").run(newsroom.root, "import", str(file))
    assert done.exit_code == 1
    assert done.stdout.endswith("30 checked and stored: 30 unreachable\n")
    assert "all 30 feeds are unreachable (refused: is the network down?)" in str(done.exception)
    listed = newsroom.json("list", "--group", "Europe")
    assert {(row["feed_group"], row["status"]) for row in listed} == {
        ("Europe/Spain", "unreachable")
    }
    advice = newsroom.error("resume", f"http://{place}/1")
    assert f"`feeds recheck http://{place}/1`" in advice
    doctor = Commands("doctor").run(newsroom.root)
    assert doctor.exit_code == 1
    assert "30 of 30 feeds could not be reached" in doctor.stdout


def test_feeds_that_were_not_accepted_are_checked_again_at_once(newsroom: Newsroom) -> None:
    late, dead = f"{newsroom.site}/late.xml", f"{newsroom.site}/dead.xml"
    Commands("feeds").run(newsroom.root, "add", late, dead, "--group", "Desk")
    newsroom.pages["/late.xml"] = newsroom.pages["/one.xml"]
    text = newsroom.text("recheck")
    assert "2 checked and stored: 1 active, 1 missing; 1 active again" in text
    assert newsroom.json("show", late)["feed_group"] == "Desk"
    assert newsroom.json("recheck", dead)["outcomes"] == {"missing": 1}


@pytest.mark.parametrize("address", ["not-a-url", "example.com", "ftp://a.example/rss", "http://"])
def test_what_is_not_an_address_is_not_added(newsroom: Newsroom, address: str) -> None:
    newsroom.text("ensure", group="rss")
    assert f"invalid address {address!r}" in newsroom.error("add", address)
    assert newsroom.json("list") == []


def test_a_check_that_is_stopped_keeps_what_was_checked(tmp_path: Path) -> None:
    feed = rss(items(["a"], newest=NOW))
    answers = {f"/{n}": body(feed, Content_Type="text/xml") for n in range(25)}
    with serve_in_thread({**answers, "/slow": after(60, body(feed))}) as site:
        place, file = f"127.0.0.1:{site.port}", tmp_path / "feeds.opml"
        file.write_bytes(opml(*(f"http://{place}{path}" for path in (*answers, "/slow"))))
        command = [sys.executable, "-m", "news_platform.cli", "feeds", "import", str(file)]
        root = tmp_path / "root"
        environ = {**os.environ, "NEWS_PLATFORM_WEB_ALLOW": place}
        command += ["--root", str(root)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=environ, stdout=quiet, stderr=quiet) as running:
            while len(site.requests) < 26 or listed_feeds(root) < 20:
                assert running.poll() is None
                time.sleep(0.2)
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) != 0
    assert listed_feeds(root) >= 25


def listed_feeds(root: Path) -> int:
    done = Commands("feeds").run(root, "list", "--json")
    return len(json.loads(done.stdout)) if done.exit_code == 0 else 0
