"""Values are read once per version of the data, and again when it changes."""

import threading
from itertools import count
from pathlib import Path

import pytest

from news_platform.server import versions
from news_platform.server.versions import TAKEDOWNS, DataVersion, Refreshed
from news_platform.storage.objects.store import open_store


def test_a_value_is_kept_until_its_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "_SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr(versions, "_SHARE_OF_TIME", float("inf"))
    store, numbers = open_store(str(tmp_path)), count()
    version = DataVersion(store)

    def read() -> list[int]:
        return [
            version.kept("of takedowns", lambda: next(numbers), TAKEDOWNS),
            version.kept("of all", lambda: next(numbers)),
        ]

    assert read() == read() == [0, 1]
    store.put("markers/feeds/a.json", b"{}")
    assert read() == [0, 2]
    store.put(f"{TAKEDOWNS}/a.json", b"{}")
    assert read() == [3, 4]
    version.forget()
    assert read() == [5, 6]


def test_callers_get_the_last_value_while_one_reads() -> None:
    numbers, may_end, has_begun = count(), threading.Event(), threading.Event()

    def read() -> int:
        number = next(numbers)
        if number:
            has_begun.set()
            assert may_end.wait(30)
        return number

    value = Refreshed(read, rest_seconds=lambda _: 0.0)
    assert value.current() == 0
    reader = threading.Thread(target=value.current)
    reader.start()
    assert has_begun.wait(30)
    assert value.current() == 0
    may_end.set()
    reader.join()
    assert value.current() == 2
