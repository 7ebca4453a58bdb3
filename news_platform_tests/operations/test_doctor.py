"""The doctor: every kind of sickness is found, named and given a cure; a healthy site passes."""

import http.server
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.cli.main import main
from news_platform.errors import NewsPlatformError
from news_platform.operations.checks import Diagnosis, Health, check_listeners, space_finding
from news_platform.operations.doctor import examine
from news_platform.rss.ledger.tables import FEEDS
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.collected import MARKER
from news_platform_tests.emulators.redis import redis_server
from news_platform_tests.operations.conftest import Site


def _findings(site: Site, **environ: str) -> dict[str, Diagnosis]:
    # A busy machine may take long; only the test of a check that hangs sets a short time.
    found = examine(site.resources(**environ), check_seconds=250.0)
    return {one.check: one for one in found}


def _wrong(found: dict[str, Diagnosis]) -> set[str]:
    return {name for name, one in found.items() if one.state is Health.WRONG}


def test_a_healthy_site_has_nothing_wrong_and_leaves_no_trace(site: Site) -> None:
    before = sorted((site.folder / "root").rglob("*"))
    found = _findings(site)
    # This machine's own disk and ports are not the test's.
    assert _wrong(found) <= {"disk", "scratch", "listeners"}
    expected = {"ledger", "crawl", "feeds", "daemon", "sensors", "queue", "checks", "clock", "root"}
    assert {name for name, one in found.items() if one.state is Health.OK} >= expected
    assert {found[name].state for name in ("sheet", "workers")} == {Health.SKIPPED}
    assert sorted((site.folder / "root").rglob("*")) == before


def test_a_dead_daemon_and_silent_sensors_are_wrong(site: Site) -> None:
    site.beat(age_seconds=7_200)
    site.tick("follow_domain_buckets", age_seconds=7_200)
    found = _findings(site)
    assert {"daemon", "sensors"} <= _wrong(found)
    assert "last heartbeat 2 h ago" in found["daemon"].meaning
    assert "dagster-daemon run" in found["daemon"].action
    assert "follow_domain_buckets last did 2 h ago" in found["sensors"].meaning


def test_a_failing_tick_and_a_stopped_partition_are_named(site: Site) -> None:
    site.fail("domain_buckets", "2025-11-01", "InputError: not a page", is_final=True)
    site.tick("follow_domain_buckets", stale={"2025-11-01": 60.0}, error="the store\nis gone")
    found = _findings(site)
    assert "follow_domain_buckets failed: the store is gone" in found["sensors"].meaning
    assert "domain_buckets 2025-11-01: InputError: not a page" in found["stale partitions"].meaning
    cure = "fix the cause, then `news-platform retry domain_buckets 2025-11-01`"
    assert found["stale partitions"].action == cure


def test_an_old_stale_partition_is_a_warning(site: Site) -> None:
    site.tick("follow_domain_buckets", stale={"2025-11-01": 3 * 86_400.0})
    found = _findings(site)["stale partitions"]
    assert found.state is Health.WARNING
    assert "domain_buckets 2025-11-01, for 3 days" in found.meaning


def test_a_root_of_commands_alone_needs_no_dagster_home(site: Site) -> None:
    found = _findings(site, DAGSTER_HOME="")
    assert found["dagster home"].state is Health.SKIPPED
    assert "daemon" not in found
    missing = _findings(site, DAGSTER_HOME=str(site.folder / "gone"))
    assert missing["dagster home"].state is Health.WRONG


def test_the_doctor_of_commands_alone_does_not_load_dagster(site: Site) -> None:
    program = (
        "import sys; from news_platform.cli.main import main;"
        "main(['doctor', '--json'], standalone_mode=False);"
        "sys.exit('dagster' in sys.modules)"
    )
    environ = {**site.environ, "PATH": "/bin", "DAGSTER_HOME": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["is_healthy"]


def test_a_ledger_of_another_version_or_damaged_is_wrong(site: Site) -> None:
    file = site.folder / "root/ledger.sqlite"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5_000])
    assert "news-platform ledger check" in _findings(site)["ledger"].meaning
    file.unlink()
    assert _findings(site)["ledger"].state is Health.SKIPPED
    file.write_bytes(whole)
    engine = open_engine(f"sqlite:///{file}")
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("update alembic_version set version_num = 'another'"))
    engine.dispose()
    found = _findings(site)["ledger"]
    assert found.state is Health.WRONG and "has revision 'another', expected" in found.meaning


def test_a_day_whose_files_are_not_those_of_its_markers_is_wrong(site: Site) -> None:
    store = site.resources().data_root.store
    assert _findings(site)["days"].state is Health.OK
    write_collected(store, replace(MARKER, warc="late.warc.gz", languages={"de": 3}, rows=3))
    found = _findings(site)["days"]
    assert found.state is Health.WRONG
    assert "2025-11-01 is not as it was collected: " in found.meaning
    assert "missing" in found.meaning and "'A corrupt day' in docs/runbook.md" in found.action


def test_silent_feeds_are_a_warning(site: Site) -> None:
    now = site.resources().clock.now()
    engine = open_engine(f"sqlite:///{site.folder}/root/ledger.sqlite")
    with engine.begin() as connection:
        late = {"usual_gap_seconds": 3_600, "last_entry_date": now - timedelta(days=9)}
        connection.execute(sa.update(FEEDS).values(**late))
    engine.dispose()
    found = _findings(site)["feeds"]
    assert found.state is Health.WARNING
    assert "https://a.example/f: no entry for 9 days" in found.meaning


def test_a_missing_root_is_named_and_nothing_is_created(site: Site, tmp_path: Path) -> None:
    found = _findings(site, NEWS_PLATFORM_ROOT=str(tmp_path / "typo"))
    assert _wrong(found) >= {"root"}
    assert "there is no data at" in found["root"].meaning
    assert found["all else"].state is Health.SKIPPED
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("listing", ["none", "closed"])
def test_a_crawl_without_listing_or_answer_is_told_apart(listing: str, site: Site) -> None:
    if listing == "none":
        shutil.rmtree(site.folder / "crawl/crawl-data")
        assert _findings(site)["crawl"].state is Health.WARNING
        return
    closed = {"NEWS_PLATFORM_CRAWL_URL": "http://127.0.0.1:9/", "NEWS_PLATFORM_ALLOW_HTTP": "1"}
    found = list(examine(site.resources(**closed), check_seconds=2.0))
    (crawl,) = (one for one in found if one.check == "crawl")
    assert crawl.state is Health.WRONG


def test_no_secret_is_shown(site: Site) -> None:
    secret = "s3cr3t-password"
    environ = {
        "NEWS_PLATFORM_LEDGER_URL": f"postgresql+psycopg2://me:{secret}@127.0.0.1:9/ledger",
        "NEWS_PLATFORM_BROKER_URL": f"redis://:{secret}@127.0.0.1:9/0",
    }
    found = _findings(site, **environ)
    assert {"ledger", "workers"} <= _wrong(found)
    assert secret not in repr(found)


def test_queues_without_a_worker_are_wrong(site: Site, tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as redis:
        found = _findings(site, NEWS_PLATFORM_BROKER_URL=redis.url)["workers"]
    assert found.state is Health.WRONG
    assert "no worker serves heavy, light (heavy: 0 waiting, light: 0 waiting)" in found.meaning


@contextmanager
def _listening(host: str, word: str, *, status: str = "200") -> Iterator[int]:
    """Run a process whose command has this word, and that answers one request on an address."""
    program = (
        "import socket, sys; s = socket.create_server((sys.argv[1], 0)); "
        "print(s.getsockname()[1], flush=True); c = s.accept()[0]; c.recv(9999); "
        "c.sendall(b'HTTP/1.1 %s x\\r\\nContent-Length: 0\\r\\n\\r\\n' % sys.argv[2].encode()); "
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, host, status, word]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def test_a_server_of_ours_that_others_reach_is_wrong() -> None:
    with _listening("0.0.0.0", "dagster-webserver") as port:
        found = check_listeners()
    assert (found.state, f"0.0.0.0:{port}" in found.meaning) == (Health.WRONG, True)
    with _listening("127.0.0.1", "dagster-webserver") as port:
        assert str(port) not in check_listeners().meaning
    with _listening("0.0.0.0", "another-server") as port:
        assert str(port) not in check_listeners().meaning
    with _listening("0.0.0.0", "news-platform", status="401") as port:
        assert str(port) not in check_listeners().meaning, "it asks for a password"


@pytest.mark.parametrize(
    ("free_gb", "per_day_gb", "expected"),
    [
        (0, 0, Health.WRONG),
        (50, 100, Health.WRONG),
        (300, 100, Health.WARNING),
        (900, 100, Health.OK),
    ],
)
def test_free_space_is_judged_against_the_plan(
    free_gb: int, per_day_gb: int, expected: Health
) -> None:
    found = space_finding("disk", Path("/data"), free_gb * 10**9, per_day_gb * 10**9)
    assert found.state is expected


def test_a_check_that_hangs_ends_with_a_line(site: Site) -> None:
    class Silent(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(2)

        do_HEAD = do_GET

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    resources = site.resources(NEWS_PLATFORM_CRAWL_URL=url, NEWS_PLATFORM_ALLOW_HTTP="1")
    found = {one.check: one for one in examine(resources, check_seconds=1.0)}
    server.shutdown()
    server.server_close()
    assert found["crawl"].meaning == "no answer within 1 s"
    assert {"feeds", "workers", "ledger"} <= found.keys(), "the others are looked at all the same"


def test_the_command_prints_lines_or_json_and_fails(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.beat(age_seconds=7_200)
    for name, value in site.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NewsPlatformError, match=r"checks failed, first: "):
        main(["doctor", "--json"], standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    assert not document["is_healthy"]
    assert {"check", "state", "meaning", "action"} == set(document["findings"][0])
    with pytest.raises(NewsPlatformError):
        main(["doctor"], standalone_mode=False)
    text = capsys.readouterr().out
    assert "wrong    daemon            silent: " in text
    assert "\n                           -> start it: `news-platform dev`" in text


def test_a_damaged_log_of_a_table_is_named_with_its_cure(site: Site) -> None:
    store = site.resources().data_root.store
    log = "crawl_articles/_delta_log/00000000000000000000.json"
    store.put(log, b'{"commitInfo": {"timesta')
    try:
        found = _findings(site)["tables"]
    finally:
        store.delete([log])
    assert found.state is Health.WRONG and "crawl_articles" in found.meaning
    assert "markers/crawl_articles" in found.action
