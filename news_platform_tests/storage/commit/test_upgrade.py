"""A root of version 0.1 is upgraded in place: nothing is lost, nothing becomes stale."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from datetime import date, timedelta
from math import ceil
from pathlib import Path
from urllib.parse import unquote

import pytest

from news_platform.datasets.collected import (
    Collected,
    collected_path,
    collected_prefix,
    dump_collected,
)
from news_platform.errors import ConfigError, StorageError
from news_platform.storage.commit.collected import (
    list_collected,
    newest_collected_days,
    read_collected,
    wanted_days,
    write_collected,
)
from news_platform.storage.commit.collected_months import combine_month, find_month
from news_platform.storage.commit.markers import fingerprint_of, write_marker
from news_platform.storage.commit.root import claim_root, read_root, read_world
from news_platform.storage.commit.upgrade import upgrade_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.collected import MARKER
from news_platform_tests.storage.conftest import Remote

FIRST = date(2016, 8, 26)


def _write_0_1(store: ObjectStore, marker: Collected) -> None:
    """Write a marker as version 0.1 did: no fingerprint in its name, no later fields."""
    document = asdict(marker) | {"day": marker.day.isoformat()}
    for name in ("source_digest", "options", "truncated_at", "dropped_responses"):
        document.pop(name)
    path = collected_path(marker.day, marker.warc)
    store.put(path, json.dumps(document, indent=1).encode())


def _old_root(store: ObjectStore, *, days: int = 40, warcs: int = 2) -> list[Collected]:
    """Write a root of version 0.1; every day is staged, each from the ETags of its markers."""
    store.put("root.json", b'{"world": "real"}')
    markers = [
        replace(MARKER, warc=f"{number}.warc.gz", day=FIRST + timedelta(days=day), rows=day)
        for day in range(days)
        for number in range(warcs)
    ]
    for marker in markers:
        _write_0_1(store, marker)
    for day in {marker.day for marker in markers}:
        inputs = fingerprint_of(store.list(collected_prefix(day)))
        rows = sum(marker.rows for marker in markers if marker.day == day)
        write_marker(store, "domain_buckets", str(day), inputs=inputs, report={"records": rows})
    return markers


def _built(store: ObjectStore) -> dict[str, str]:
    paths = [info.path.rpartition("/")[2] for info in store.list("markers/domain_buckets")]
    return dict(name.removesuffix(".json").split("@") for name in paths)


def test_an_upgraded_root_has_the_same_markers_and_nothing_is_stale(any_store: ObjectStore) -> None:
    markers = _old_root(any_store, days=8)
    assert wanted_days(any_store, built=_built(any_store)) == _built(any_store)
    assert upgrade_root(any_store)
    assert read_collected(any_store) == markers
    assert read_collected(any_store, [FIRST]) == markers[:2]
    assert newest_collected_days(any_store, count=2) == [markers[-1].day, markers[-3].day]
    assert wanted_days(any_store, built=_built(any_store)) == _built(any_store)
    assert len(list(any_store.list("news/collected"))) == 4  # two objects for each of two months
    assert not upgrade_root(any_store)


def test_a_copy_of_an_old_root_is_not_stale_either(tmp_path: Path) -> None:
    _old_root(open_store(str(tmp_path / "old")))
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    copy = open_store(str(tmp_path / "copy"))
    assert wanted_days(copy, built=_built(copy)) != _built(copy)  # by inodes, as 0.1 has it
    upgrade_root(copy)
    assert wanted_days(copy, built=_built(copy)) == _built(copy)


def test_a_day_that_was_stale_before_the_upgrade_is_stale_after_it(tmp_path: Path) -> None:
    old = open_store(str(tmp_path / "old"))
    _old_root(old, days=3)
    _write_0_1(old, replace(MARKER, day=FIRST, warc="late.warc.gz", rows=7))
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    for name in ("old", "copy"):
        store = open_store(str(tmp_path / name))
        upgrade_root(store)
        wanted, built = wanted_days(store, built=_built(store)), _built(store)
        assert [day for day in wanted if wanted[day] != built[day]] == [str(FIRST)]


def test_version_0_1_stops_at_an_upgraded_and_at_a_new_root(any_store: ObjectStore) -> None:
    claim_root(any_store.child("new"), sample=False)
    _old_root(any_store, days=1)
    upgrade_root(any_store)
    for store in (any_store, any_store.child("new")):
        # The rule of version 0.1: json.loads(...)["world"], and one line at a KeyError.
        assert "world" not in json.loads(store.read("root.json"))
        assert read_world(store) == "real"


def test_an_upgrade_first_stops_version_0_1_and_then_moves_markers(remote: Remote) -> None:
    _old_root(remote.store, days=2)
    remote.proxy.seen.clear()
    upgrade_root(remote.store)
    writes = [
        "root.json" in unquote(seen.target)
        for seen in remote.proxy.seen
        if seen.method in ("PUT", "POST", "DELETE")
    ]
    assert (writes[0], writes[-1], sum(writes)) == (True, True, 2)


def test_a_root_of_a_later_version_is_one_clear_line(local_store: ObjectStore) -> None:
    local_store.put("root.json", b'{"format": 3, "holds": "real"}')
    with pytest.raises(ConfigError, match=r"format 3, this version reads up to 2: update"):
        claim_root(local_store, sample=None)


def test_unknown_fields_are_ignored_and_missing_ones_have_defaults(
    local_store: ObjectStore,
) -> None:
    local_store.put("root.json", b'{"format": 2, "contents": "real", "colour": "red"}')
    assert read_world(local_store) == "real"
    _write_0_1(local_store, MARKER)
    path = collected_path(MARKER.day, MARKER.warc)
    document = json.loads(local_store.read(path)) | {"colour": "red"}
    local_store.put(path, json.dumps(document).encode())
    assert read_collected(local_store) == [MARKER]
    local_store.put(path, json.dumps(document | {"format": 3}).encode())
    with pytest.raises(StorageError, match=r"format 3, this version reads up to 2: update"):
        read_collected(local_store)


def test_a_month_of_a_later_format_is_one_clear_line(local_store: ObjectStore) -> None:
    body = {"format": 3, "days": {}, "markers": "x"}
    local_store.put("news/collected/2016/08/month.json", json.dumps(body).encode())
    with pytest.raises(StorageError, match=r"month.json' has format 3, .* up to 2: update"):
        list_collected(local_store)


def test_a_broken_marker_stays_where_it_is_and_is_named(local_store: ObjectStore) -> None:
    markers = _old_root(local_store, days=1)
    path = collected_path(FIRST, "broken.warc.gz")
    local_store.put(path, b"{")
    upgrade_root(local_store)
    with pytest.raises(StorageError, match=r"broken\.warc\.gz\.json"):
        read_collected(local_store)
    local_store.delete([path])
    assert read_collected(local_store) == markers


def test_combining_again_adds_what_came_later(any_store: ObjectStore) -> None:
    write_collected(any_store, MARKER)
    before = wanted_days(any_store, built={})
    assert combine_month(any_store, MARKER.day) == 1
    assert combine_month(any_store, MARKER.day) == 0
    assert wanted_days(any_store, built={}) == before
    later = replace(MARKER, warc="later.warc.gz")
    write_collected(any_store, later)
    assert combine_month(any_store, MARKER.day) == 1
    assert read_collected(any_store) == [MARKER, later]
    assert len(list(any_store.list())) == 2


UPGRADE = """
import sys
from news_platform.storage.commit.upgrade import upgrade_root
from news_platform.storage.objects.store import open_store
store = open_store(sys.argv[1])
sys.stdin.readline()
upgrade_root(store)
"""


def _kill_upgrades(root: Path, *, kills: int, seed: int) -> int:
    """Start upgrades and kill each at a random moment; return how many were cut short."""
    draw, cut = random.Random(seed), 0
    for _ in range(kills):
        command = [sys.executable, "-c", UPGRADE, str(root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(draw.uniform(0.3, 0.9))
            os.kill(process.pid, signal.SIGKILL)
        found = read_root(open_store(str(root)))
        cut += found is None or found.format == 1 or found.is_upgrading
    return cut


@pytest.mark.parametrize(
    "kills", [3, pytest.param(60, marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_an_upgrade_killed_at_any_moment_is_finished_by_the_next(
    tmp_path: Path, kills: int
) -> None:
    store = open_store(str(tmp_path / "root"))
    markers = _old_root(store, days=120, warcs=3)
    built = _built(store)
    _kill_upgrades(tmp_path / "root", kills=kills, seed=kills)
    assert read_collected(store) == markers  # also half-way
    upgrade_root(store)
    assert read_collected(store) == markers
    assert wanted_days(store, built=built) == built
    assert (read_root(store) or pytest.fail("no root")).is_upgrading is False
    assert find_month(store, FIRST).units


def test_ten_years_of_markers_need_at_most_ten_pages_of_a_listing(tmp_path: Path) -> None:
    store, year = open_store(str(tmp_path / "root")), 2020
    days = [date(year, 1, 1) + timedelta(days=count) for count in range(366)]
    for day in days:
        folder = tmp_path / "root" / collected_prefix(day)
        folder.mkdir(parents=True)
        for number in range(18):
            marker = replace(MARKER, day=day, warc=f"CC-NEWS-{number:02}.warc.gz")
            path = collected_path(day, marker.warc, marker.fingerprint)
            (tmp_path / "root" / path).write_bytes(dump_collected(marker))
    wanted = wanted_days(store, built={})
    for month in range(1, 13):
        combine_month(store, date(year, month, 1))
    assert wanted_days(store, built={}) == wanted
    objects = len(list(store.list("news/collected")))
    assert objects == 24
    # Of ten years, the three newest months are not combined; a follower has one marker per day.
    recent, follower = 3 * 31 * 18, 3653
    assert ceil((10 * objects + recent) / 1000) + ceil(follower / 1000) <= 6
    started = time.process_time()
    wanted_days(store, built={})
    assert time.process_time() - started < 0.5  # the indexes are remembered
