"""Requests as files: what may be asked for, what is recorded about it, and few reads for many."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl
import pytest

from news_platform.errors import InputError, StorageError
from news_platform.storage.engines import RemovedRows
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import apply_takedowns
from news_platform.takedowns.requests import (
    TakedownTerms,
    add_request,
    list_pending,
    mark_late,
    mark_pending,
    read_record,
    read_states,
    require_request,
    withdraw_request,
)
from news_platform_tests.takedowns.asked import NOW, ask, asked


@pytest.mark.parametrize(
    ("kind", "value", "cure"),
    [
        ("url", "mailto:x@y.example", "expected a web address"),
        ("url", "/news/one", "expected a web address"),
        ("url", "https://*.a.example/one", "write 'https://a.example/one'"),
        ("domain", "example", "such as example.org"),
        ("domain", ".a.example", "such as example.org"),
        ("domain", "me@a.example", "such as example.org"),
        ("domain", "*.a.example", "write 'a.example'"),
        ("domain", "https://a.example/one", "write --domain a.example, or --prefix"),
        ("prefix", "ftp://a.example/", "expected a web address"),
        ("prefix", "https://a.example/2019/*", "write 'https://a.example/2019/'"),
        # Without its tracker it would cover the whole host.
        ("prefix", "https://a.example/?utm_id=1", "write 'https://a.example/'"),
    ],
)
def test_what_would_cover_nothing_or_too_much_is_refused(kind: str, value: str, cure: str) -> None:
    with pytest.raises(InputError, match=re.escape(cure)):
        asked(kind, value)


def test_a_request_that_has_ended_already_is_refused() -> None:
    with pytest.raises(InputError, match="give a later day"):
        asked("domain", "a.example", terms=TakedownTerms("x", expires_at=NOW))


def test_a_request_needs_a_reason_and_one_to_withdraw_must_exist(local_store: ObjectStore) -> None:
    with pytest.raises(InputError, match="reason"):
        asked("url", "https://a.example/", terms=TakedownTerms("  "))
    with pytest.raises(InputError, match="there is no takedown"):
        withdraw_request(local_store, "20250101-00000000", reason="", now=NOW)


def test_a_request_is_stored_once_and_never_changed(local_store: ObjectStore) -> None:
    request = ask(local_store, "url", "https://a.example/x?utm_source=y")
    assert request.values == ("https://a.example/x",)
    assert not add_request(local_store, request)
    assert [state.request for state in read_states(local_store)] == [request]


def test_a_damaged_request_stops_everything(local_store: ObjectStore) -> None:
    """Rather nothing than what must not be: nobody knows what the file forbade."""
    request = ask(local_store, "url", "https://a.example/x")
    local_store.put(f"takedowns/requests/{request.id}.json", b"{")
    with pytest.raises(StorageError, match="restore it"):
        Takedowns.read(local_store)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that holds some rows by partition, and remembers what it was asked to remove."""

    held: Mapping[str, int]
    calls: list[str] = field(default_factory=list)
    dataset: str = "things"
    on_remove: Callable[[str], object] = lambda _: None

    def find(self, *_: object) -> Mapping[str, int]:
        if self.dataset == "damaged":
            raise pl.exceptions.ComputeError("not a Parquet file")
        return self.held

    def remove(self, unit: str, _target: object) -> RemovedRows:
        self.calls.append(unit)
        self.on_remove(unit)
        if unit == "broken":
            raise StorageError("it is damaged")
        return RemovedRows(self.held[unit], 10, 5)


def test_the_record_says_what_went_and_never_what_it_was(local_store: ObjectStore) -> None:
    request = ask(local_store, "domain", "a.example")
    calls: list[str] = []
    report = apply_takedowns(local_store, [_Part({"p/1": 3}, calls)], now=NOW)
    assert (report.served, calls) == ((request.id,), ["p/1"])
    record = read_record(local_store, request.id)
    assert record["bytes_removed"] == 10 and "a.example" not in str(record)
    assert require_request(local_store, request.id).is_applied
    # Served requests are not searched for again.
    assert apply_takedowns(local_store, [_Part({"p/1": 3}, calls)], now=NOW).served == ()
    assert calls == ["p/1"]


def test_what_fails_stays_marked_and_the_rest_is_done(local_store: ObjectStore) -> None:
    request = ask(local_store, "domain", "a.example")
    calls: list[str] = []
    part = _Part({"a": 1, "broken": 1, "z": 1}, calls)
    report = apply_takedowns(local_store, [part], now=NOW)
    assert report.left == {"things broken": "it is damaged"} and calls == ["a", "broken", "z"]
    assert list_pending(local_store) == [("things", "broken")]
    assert not require_request(local_store, request.id).is_applied


def test_a_dataset_that_cannot_be_searched_does_not_keep_the_others(
    local_store: ObjectStore,
) -> None:
    request = ask(local_store, "domain", "a.example")
    calls: list[str] = []
    damaged = _Part({}, dataset="damaged")
    report = apply_takedowns(local_store, [damaged, _Part({"a": 1}, calls)], now=NOW)
    assert calls == ["a"] and report.left == {
        "damaged": "cannot read 'damaged': not a Parquet file"
    }
    # It is searched for again once the file is mended.
    assert not require_request(local_store, request.id).is_searched


def test_a_partition_that_is_marked_again_while_it_is_cleaned_stays_marked(
    local_store: ObjectStore,
) -> None:
    ask(local_store, "domain", "a.example")
    part = _Part({"a": 1}, on_remove=lambda unit: mark_late(local_store, "things", [unit]))
    apply_takedowns(local_store, [part], now=NOW)
    assert list_pending(local_store) == [("things", "a")]


def test_what_is_written_before_all_requests_are_served_is_marked(local_store: ObjectStore) -> None:
    def write() -> list[tuple[str, str]]:
        with cleaned_later(local_store, {"things": ["a"]}):
            pass
        found = list_pending(local_store)
        apply_takedowns(local_store, [_Part({"a": 1}, [])], now=NOW)
        return found

    assert write() == []
    ask(local_store, "domain", "a.example")
    # The request may have been searched for before the write.
    assert write() == [("things", "a")]
    assert write() == []
    with pytest.raises(StorageError), cleaned_later(local_store, {"things": ["b"]}):
        ask(local_store, "domain", "b.example")
        raise StorageError("it died after its first file")
    assert list_pending(local_store) == [("things", "b")]


def test_a_mark_of_somebody_else_is_served(local_store: ObjectStore) -> None:
    ask(local_store, "domain", "a.example")
    calls: list[str] = []
    apply_takedowns(local_store, [_Part({}, calls)], now=NOW)
    mark_pending(local_store, "things", ["late"])
    apply_takedowns(local_store, [_Part({"late": 1}, calls)], now=NOW)
    assert calls == ["late"] and list_pending(local_store) == []
