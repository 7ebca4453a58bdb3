"""A failing server or proxy may answer anything, and still no row is lost or duplicated."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, repeat

import pytest
import sqlalchemy as sa

from news_platform.errors import ConfigError
from news_platform.rss.sheets.google import ChangeRejected, OutcomeUnknown
from news_platform_tests.emulators.relay import Answer, Request
from news_platform_tests.emulators.sheets.faults import Fault
from news_platform_tests.emulators.sheets.server import SheetsEmulator
from news_platform_tests.rss.ledger_rows import add_article, add_feed
from news_platform_tests.rss.sheets.harness import SheetHarness, differences, open_harness

HTML = b"<!DOCTYPE html><html><head><title>Error 502</title></head><body>" + b"x" * 5_000


def answer(status: int, body: bytes, *, missing: int = 0) -> Answer:
    return Answer(status, {"content-type": "text/html"}, body, len(body) + missing)


GARBAGE = {
    "html 502": answer(502, HTML),
    "html 200": answer(200, HTML),
    "empty 200": answer(200, b""),
    "cut off": answer(200, b'{"spreadsheetId": "bo', missing=400),
    "an empty object": answer(200, b"{}"),
    "another document": answer(200, b'{"ok": true, "sheets": 7, "valueRanges": [], "files": null}'),
    "an odd error": answer(500, b'{"error": {"code": "x", "errors": ["y"], "message": null}}'),
}


@dataclass
class Garbler:
    """A service in front of the emulator that replaces some answers, after passing calls on."""

    emulator: SheetsEmulator
    place: str = ""
    garbage: Iterator[Answer] = field(default_factory=lambda: iter(()))
    is_applied: bool = True
    garbled: int = 0

    def answer(self, request: Request) -> Answer:
        if not self.place or self.place not in f"{request.method} {request.path}":
            return self.emulator.answer(request)
        found = next(self.garbage, None)
        if found is None:
            return self.emulator.answer(request)
        self.garbled += 1
        if self.is_applied:
            self.emulator.answer(request)
        return found


@pytest.fixture
def garbler() -> Garbler:
    return Garbler(SheetsEmulator())


@pytest.fixture
def harness(sqlite_ledger: sa.Engine, garbler: Garbler) -> Iterator[SheetHarness]:
    def before(emulator: SheetsEmulator) -> Garbler:
        garbler.emulator = emulator
        return garbler

    add_feed(sqlite_ledger, "https://outlet.example/feed")
    add_article(sqlite_ledger)
    with open_harness(sqlite_ledger, before=before) as harness:
        yield harness


# Each kind of garbage once, in turn after a change that was applied and one that was lost.
@pytest.mark.parametrize(("name", "is_applied"), zip(GARBAGE, cycle((True, False)), strict=False))
def test_garbage_in_answer_to_a_change_leaves_every_row_once(
    harness: SheetHarness, garbler: Garbler, name: str, is_applied: bool
) -> None:
    harness.sync()
    add_article(harness.engine)
    garbler.place, garbler.is_applied = "POST /v4/spreadsheets/", is_applied
    garbler.garbage = iter([GARBAGE[name]])
    harness.sync()
    assert garbler.garbled == 1
    assert differences(harness.engine, harness.book) == {}
    assert [row["row_id"] for row in harness.rows("Raw")] == [1, 2]


@pytest.mark.parametrize(
    ("name", "place"),
    zip(GARBAGE, cycle(("GET /v4/spreadsheets/book-1", "/values:batchGet")), strict=False),
)
def test_a_read_is_made_again_until_it_is_answered(
    harness: SheetHarness, garbler: Garbler, name: str, place: str
) -> None:
    garbler.place, garbler.garbage = place, iter([GARBAGE[name]] * 2)
    harness.sync()
    assert garbler.garbled == 2
    assert differences(harness.engine, harness.book) == {}


@pytest.mark.parametrize("place", ["/drive/v3/files", "/token"])
def test_garbage_while_the_book_is_opened_makes_no_second_one(
    harness: SheetHarness, garbler: Garbler, place: str
) -> None:
    garbler.place, garbler.garbage = place, iter([GARBAGE["html 200"]])
    harness.sync()
    assert garbler.garbled == 1
    assert [book.title for book in harness.emulator.books.values()] == ["Desk"]
    assert differences(harness.engine, harness.book) == {}


@pytest.mark.parametrize("place", ["POST /v4/", "GET /drive/", "/token"])
def test_a_server_that_stays_broken_is_named_in_one_short_line(
    harness: SheetHarness, garbler: Garbler, place: str
) -> None:
    garbler.place, garbler.is_applied = place, False
    garbler.garbage = repeat(GARBAGE["html 502"])
    with pytest.raises(OutcomeUnknown) as caught:
        harness.sync()
    assert "502" in str(caught.value) and len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_refused_key_is_told_from_a_token_server_in_trouble(
    harness: SheetHarness, garbler: Garbler
) -> None:
    said = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    body = json.dumps(said).encode()
    garbler.place, garbler.garbage = "/token", repeat(Answer(400, {}, body, len(body)))
    with pytest.raises(ConfigError, match=r"rejected the service account: .*invalid_grant"):
        harness.sync()


def test_a_page_that_refuses_is_a_refusal_and_not_tried_again(
    harness: SheetHarness, garbler: Garbler
) -> None:
    harness.sync()
    add_article(harness.engine)
    garbler.place, garbler.is_applied = ":batchUpdate", False
    garbler.garbage = repeat(answer(413, b"<html>Request Entity Too Large"))
    with pytest.raises(ChangeRejected, match="Request Entity Too Large"):
        harness.sync()
    assert garbler.garbled == 1


def test_drives_own_way_to_say_over_quota_is_waited_out(
    harness: SheetHarness, garbler: Garbler
) -> None:
    errors = [{"domain": "usageLimits", "reason": "userRateLimitExceeded"}]
    said = {"error": {"code": 403, "message": "Rate Limit Exceeded", "errors": errors}}
    garbler.place, garbler.is_applied = "/drive/v3/files", False
    garbler.garbage = iter([answer(403, json.dumps(said).encode())] * 3)
    assert harness.sync().quota_waits == 3
    assert differences(harness.engine, harness.book) == {}


def test_a_change_that_was_given_up_is_made_again(harness: SheetHarness, garbler: Garbler) -> None:
    harness.sync()
    add_article(harness.engine)
    said = {"error": {"code": 409, "message": "The operation was aborted.", "status": "ABORTED"}}
    garbler.place, garbler.is_applied = ":batchUpdate", False
    garbler.garbage = iter([answer(409, json.dumps(said).encode())])
    assert harness.sync().doubts == 1
    assert differences(harness.engine, harness.book) == {}


@pytest.mark.parametrize("fault", ["over_quota", "before", "after", "late"])
def test_a_fault_while_the_book_is_created_makes_one_book(
    harness: SheetHarness, fault: Fault
) -> None:
    harness.emulator.faults.planned_drive.append(fault)
    harness.emulator.faults.latest = 1
    if fault == "before":
        with pytest.raises(
            OutcomeUnknown, match=r"no spreadsheet 'Desk' yet.*the next sync looks for it first"
        ):
            harness.sync()
    harness.sync()
    assert harness.emulator.faults.happened == {fault: 1}
    assert len(harness.emulator.books) == 1
    assert differences(harness.engine, harness.book) == {}
