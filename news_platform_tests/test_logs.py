"""Log lines: text or JSON, what they are about, and no secrets, in every kind of process."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import pytest

from news_platform import logs
from news_platform.defs.runs import run_naming_resources
from news_platform.errors import ConfigError
from news_platform.isolation.pool import Done, Pool
from news_platform.logs import (
    bind_process,
    bound,
    bound_facts,
    carried,
    configure_logging,
)
from news_platform.settings import load_settings

SECRET = "hunter2-and-more"
_log = logging.getLogger("news_platform.test")


@pytest.fixture
def as_json() -> Iterator[None]:
    """Write the lines of this process as JSON; undo it afterwards."""
    level = logging.getLogger("news_platform").level
    configure_logging("json", "debug", secrets=[SECRET], logger="news_platform")
    yield
    assert logs._Configured.handler is not None
    logging.getLogger("news_platform").removeHandler(logs._Configured.handler)
    logging.getLogger("news_platform").setLevel(level)
    logs._Configured.handler, logs._Configured.options = None, ("text", "warning")
    bind_process()


def _lines(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()]


@pytest.mark.usefixtures("as_json")
def test_a_line_says_what_it_is_about(capfd: pytest.CaptureFixture[str]) -> None:
    bind_process(run_id="r1", asset="raw_news", partition="2025-11-01")
    with bound(warc="a.warc.gz"):
        _log.info("%s rows", 3)
    _log.warning("done")
    first, second = _lines(capfd)
    assert {name: first[name] for name in ("level", "message", "warc", "run_id", "asset")} == {
        "level": "info", "message": "3 rows", "warc": "a.warc.gz", "run_id": "r1",
        "asset": "raw_news",
    }  # fmt: skip
    assert first["partition"] == "2025-11-01"
    assert first["time"].endswith("+00:00") and first["logger"] == "news_platform.test"
    assert "warc" not in second and second["run_id"] == "r1"


@pytest.mark.usefixtures("as_json")
def test_secrets_are_in_no_part_of_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    url = "https://me:pw123@h.example/feed?api_key=abc123&page=2&X-Amz-Credential=cred9"
    with bound(feed=url):
        try:
            raise ValueError(f"cannot read {url} with {SECRET}")
        except ValueError:
            _log.exception("failed with %s at %s", SECRET, url)
    text = capfd.readouterr().err
    assert text.count("\n") == 1, "a traceback is part of its line"
    for hidden in (SECRET, "pw123", "abc123", "cred9"):
        assert hidden not in text
    line = json.loads(text)
    assert line["feed"] == "https://***@h.example/feed?api_key=***&page=2&X-Amz-Credential=***"
    assert "ValueError: cannot read" in line["exception"]


@pytest.mark.usefixtures("as_json")
def test_a_worker_process_writes_the_same_lines(capfd: pytest.CaptureFixture[str]) -> None:
    bind_process(run_id="r1")
    with Pool("news_platform_tests.test_logs:log_item", workers=1, deadline_seconds=60) as pool:
        with bound(warc="a.warc.gz"):
            first = pool.submit("one")
        with bound(warc="b.warc.gz"):
            second = pool.submit("ftp://h/?token=abc")
        assert isinstance(first.result(), Done)
        assert isinstance(second.result(), Done)
    lines = _lines(capfd)
    assert [(line["warc"], line["run_id"], line["message"]) for line in lines] == [
        ("a.warc.gz", "r1", "item one"),
        ("b.warc.gz", "r1", "item ftp://h/?token=***"),
    ]
    assert lines[0]["level"] == "debug"


def log_item(item: str) -> None:
    """Be the target of a pool that logs each item."""
    _log.debug("item %s", item)


def test_facts_reach_tasks_and_carried_functions_but_not_their_neighbours() -> None:
    async def fetch(name: str) -> str:
        with bound(feed=name):
            await asyncio.sleep(0)
            return bound_facts()["feed"]

    async def both() -> list[str]:
        return list(await asyncio.gather(fetch("a"), fetch("b")))

    assert asyncio.run(both()) == ["a", "b"]
    with bound(warc="w"), ThreadPoolExecutor(1) as threads:
        assert threads.submit(bound_facts).result() == {}
        assert threads.submit(carried(bound_facts)).result() == {"warc": "w"}
        assert threads.submit(bound_facts).result() == {}, "the thread has forgotten it"


@pytest.mark.usefixtures("as_json")
def test_the_lines_of_a_run_name_it_in_all_threads(capfd: pytest.CaptureFixture[str]) -> None:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["de"]))
    def logged(context: dg.AssetExecutionContext, platform: dg.ResourceParam[str]) -> None:
        worker = threading.Thread(target=_log.info, args=(f"built from {platform}",))
        worker.start()
        worker.join()

    defs = dg.Definitions([logged], resources=run_naming_resources("x"))
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(partition_key="de", asset_selection=[logged.key])
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    (line,) = (json.loads(line) for line in lines)
    assert (line["message"], line["partition"]) == ("built from x", "de")
    assert (line["run_id"], line["asset"]) == (result.run_id, "logged")


def _command(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "news_platform.cli", *words]
    return subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/bin", **environ}, check=False
    )


def test_a_command_writes_text_or_json_by_setting(tmp_path: Any) -> None:
    # A list of feeds without a feed is worth a warning.
    (tmp_path / "feeds.opml").write_text("<opml><body/></opml>")
    words = ("rss", "discovery", "--root", str(tmp_path))
    done = _command(*words, NEWS_PLATFORM_LOG_FORMAT=" JSON ", NEWS_PLATFORM_LOG_LEVEL="Info")
    first = json.loads(done.stderr.splitlines()[0])
    assert (first["level"], first["logger"]) == (
        "warning",
        "news_platform.rss.feed_list",
    )
    assert _command(*words).stderr.startswith("warning: the root's 'feeds.opml' lists no feeds")


def test_a_wrong_format_or_level_is_named_with_the_choices() -> None:
    found = load_settings({}).logs
    assert (found.format, found.level) == ("text", "warning")
    with pytest.raises(ConfigError, match="LOG_FORMAT='xml': expected 'text' or 'json'"):
        load_settings({"NEWS_PLATFORM_LOG_FORMAT": "xml"})
    with pytest.raises(ConfigError, match="LOG_LEVEL='loud': expected 'debug', 'info'"):
        load_settings({"NEWS_PLATFORM_LOG_LEVEL": "loud"})


@pytest.mark.usefixtures("as_json")
def test_lines_of_a_run_do_not_name_pages(capfd: pytest.CaptureFixture[str]) -> None:
    page = "https://a.example/story?id=7"
    _log.info("read %s", page)
    bind_process(run_id="r1")
    with bound(page=page):
        _log.info("read %r of https://data.example/crawl-data/x.warc.gz", page)
    outside, inside = _lines(capfd)
    assert outside["message"] == f"read {page}"
    assert inside["page"] == "https://a.example/…"
    assert inside["message"] == (
        "read 'https://a.example/…' of https://data.example/crawl-data/x.warc.gz"
    )
