"""From research files to surveyed domains: run once, run twice, run on broken input."""

import asyncio
import gzip
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.datasets.domain_metadata import DOMAIN_METADATA, DomainMetadata
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext, SurveyOptions, SurveyReport
from news_platform.domain_metadata.pipeline import (
    failed_files,
    queue_batch,
    survey_batch,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file, misplaced_files, raw_batches
from news_platform.domain_metadata.results import iter_broken, read_metadata
from news_platform.errors import FetchError, InputError, StorageError
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.requests import list_pending
from news_platform_tests.fakes import SurveyedWeb, response
from news_platform_tests.takedowns.asked import ask

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
QUICK = SurveyOptions(retry_seconds=0.01, lease_seconds=5)
RAW = "raw/country=de/category=media/date=2025-11-01"
PROD = "prod/country=de/category=media/date=2025-11-01"
URLSET = b"<urlset><url><loc>https://a.example/1</loc></url></urlset>"


def research(*domains: str, **meta: object) -> bytes:
    records = [{"normalized_domain": domain, "source_type": "media"} for domain in domains]
    return json.dumps({"meta": meta, "records": records}).encode()


def site(domain: str, robots: bytes = b"", sitemap: object = URLSET) -> dict[str, object]:
    return {
        f"https://{domain}/robots.txt": robots,
        f"https://{domain}/sitemap.xml": sitemap,
    }


def survey(
    batch: PartitionInfo,
    web: Mapping[str, object],
    *,
    store: ObjectStore,
    queue: DomainQueue,
    options: SurveyOptions = QUICK,
) -> tuple[SurveyReport, SurveyedWeb]:
    fetcher = SurveyedWeb(web)
    context = SurveyContext(queue, store, fetcher, clock=lambda: NOW, seconds=time.time, worker="w")
    return asyncio.run(survey_batch(batch, context=context, options=options)), fetcher


def facts(store: ObjectStore, batch: PartitionInfo, domain: str) -> DomainMetadata:
    found = read_metadata(store, batch, domain)
    assert found is not None
    return found


def names(store: ObjectStore, folder: str) -> list[str]:
    return [info.path.removeprefix(f"{folder}/") for info in store.list(folder)]


def test_a_research_file_is_queued_and_marked_and_left_as_it_is(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    body = research("a.example", "www.b.example", "a.example")
    assert import_file(local_store, batch, name="x.json", body=body) == f"{RAW}/raw_0001.json"
    report = queue_batch(batch, store=local_store, queue=queue, now=NOW)
    assert (report.files, report.records, report.messages, report.new_domains) == (1, 3, 2, 2)
    assert local_store.read(f"{RAW}/raw_0001.json") == body
    assert local_store.read(f"{RAW}/raw_0001.json.success") == b""
    marker = read_markers(local_store, "domain_queue")[batch.key]
    assert marker.inputs == raw_batches(local_store)[batch.key]


def test_a_survey_that_runs_while_a_request_waits_is_cleaned_later(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    import_file(local_store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    ask(local_store, "domain", "gone.example")
    survey(batch, site("a.example"), store=local_store, queue=queue)
    assert ("domain_metadata", batch.key) in list_pending(local_store)


def test_queueing_twice_changes_nothing_and_mends_a_crash_before_the_checkpoint(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    import_file(local_store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    local_store.delete([f"{RAW}/raw_0001.json.success"])
    again = queue_batch(batch, store=local_store, queue=queue, now=NOW)
    assert (again.files, again.files_known, again.new_domains) == (1, 1, 0)
    assert local_store.exists(f"{RAW}/raw_0001.json.success")
    assert len(queue.messages(batch.key)) == 1


def test_a_bad_record_is_quarantined_with_its_reason(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    good, odd = '{"normalized_domain": "a.example"}', '{"confidence": NaN, "rank": 1e999}'
    body = f'{{"records": [{good}, {{"confidence": 9}}, 7, {odd}]}}'
    import_file(local_store, batch, name="x", body=body.encode())
    report = queue_batch(batch, store=local_store, queue=queue, now=NOW)
    assert report.dropped == {"bad_confidence": 2, "bad_record": 1} and report.new_domains == 1
    path = "quarantine/research/country=de/category=media/date=2025-11-01/raw_0001.jsonl"
    # NaN and infinity are not JSON: readers other than Python's fail on such a line.
    lines = [json.loads(x, parse_constant=pytest.fail) for x in local_store.read(path).splitlines()]
    assert lines == [
        {"index": 1, "reason": "bad_confidence", "record": {"confidence": 9}},
        {"index": 2, "reason": "bad_record", "record": 7},
        {"index": 3, "reason": "bad_confidence", "record": {"confidence": "NaN", "rank": "1e999"}},
    ]


def test_what_is_taken_down_is_neither_queued_nor_quarantined(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    ask(local_store, "domain", "gone.example")
    records = [
        {"normalized_domain": "gone.example"},
        {"normalized_domain": "-a.example", "raw_url": "https://gone.example/"},
        {"normalized_domain": "-a.example", "raw_url": "https://a.example/"},
    ]
    body = json.dumps({"records": records}).encode()
    import_file(local_store, batch, name="x", body=body)
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    (kept,) = local_store.list("quarantine")
    lines = [json.loads(line) for line in local_store.read(kept.path).splitlines()]
    assert [line["record"]["raw_url"] for line in lines] == ["https://a.example/"]
    assert queue.messages(batch.key) == []


def test_the_number_of_a_deleted_file_is_not_used_again_and_a_misnamed_file_is_reported(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    path = import_file(local_store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    local_store.delete([path])
    again = import_file(local_store, batch, name="x", body=research("b.example"))
    assert again == f"{RAW}/raw_0002.json"
    assert queue_batch(batch, store=local_store, queue=queue, now=NOW).new_domains == 1
    for name in ("raw_1.json", "RAW_0003.JSON", "raw_metadata.json", "notes.json"):
        local_store.put(f"{RAW}/{name}", b"{}")
    misnamed = {f"{RAW}/raw_1.json", f"{RAW}/RAW_0003.JSON"}
    assert set(misplaced_files(local_store)) == misnamed
    assert set(failed_files(batch, store=local_store, queue=queue)) == misnamed


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"records": {}}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_bad_file_fails_alone(
    body: bytes, local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    local_store.put(f"{RAW}/raw_0001.json", body)
    local_store.put(f"{RAW}/raw_0002.json", research("a.example"))
    report = queue_batch(batch, store=local_store, queue=queue, now=NOW)
    assert list(report.failed) == [f"{RAW}/raw_0001.json"] and report.new_domains == 1
    assert not local_store.exists(f"{RAW}/raw_0001.json.success")
    assert local_store.exists(f"{RAW}/raw_0002.json.success")


def test_a_file_that_changed_after_it_was_accepted_is_named(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    local_store.put(f"{RAW}/raw_0001.json", research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    local_store.put(f"{RAW}/raw_0001.json", research("b.example"))
    report = queue_batch(batch, store=local_store, queue=queue, now=NOW)
    assert "changed after it was accepted" in report.failed[f"{RAW}/raw_0001.json"]
    assert [one.registrable_domain for one in queue.messages(batch.key)] == ["a.example"]


def test_an_import_takes_the_next_number_and_never_overwrites(
    local_store: ObjectStore, batch: PartitionInfo
) -> None:
    local_store.put(f"{RAW}/raw_0007.json", research("a.example"))
    first = import_file(local_store, batch, name="new", body=research("b.example"))
    same = import_file(local_store, batch, name="again", body=research("b.example"))
    assert first == same == f"{RAW}/raw_0008.json"
    with pytest.raises(InputError, match="is not a research file"):
        import_file(local_store, batch, name="bad.json", body=b"[]")
    notes = import_file(local_store, batch, name="raw_metadata.json", body=b"{}")
    assert notes == f"{RAW}/raw_metadata.json"
    with pytest.raises(InputError, match="exists with other content"):
        import_file(local_store, batch, name="raw_metadata.json", body=b'{"other": 1}')


@pytest.fixture
def queued(local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo) -> None:
    import_file(local_store, batch, name="x", body=research("a.example", "b.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)


@pytest.mark.usefixtures("queued")
def test_a_survey_stores_files_facts_and_marker_for_each_domain(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    robots = b"user-agent: GPTBot\ndisallow: /\nuser-agent: *\ncrawl-delay: 2\ndisallow: /x\n"
    missing = response("https://b.example/sitemap.xml", status=404)
    web = site("a.example", robots) | site("b.example", b"", missing)
    report, fetcher = survey(batch, web, store=local_store, queue=queue)
    assert report.outcomes == {"ok": 2} and report.surveyed == 2
    assert names(local_store, f"{PROD}/a.example") == [
        "domain_metadata.json",
        "domain_metadata.json.success",
        "robots.txt",
        "sitemap.xml",
    ]
    assert local_store.read(f"{PROD}/a.example/robots.txt") == robots
    assert local_store.read(f"{PROD}/a.example/domain_metadata.json.success") == b""
    found = facts(local_store, batch, "a.example")
    assert (found.domain_id, found.outcome, found.final) == ("media:de:a.example", "ok", True)
    assert found.robots.exists and found.robots.content_length == len(robots)
    assert found.robots.crawl_delay_seconds == 2.0 and fetcher.delays == {"a.example": 2.0}
    assert (found.sitemap.kind, found.sitemap.url_count) == ("urlset", 1)
    assert (
        found.sitemap.found_by == "default" and found.source.raw_file_path == f"{RAW}/raw_0001.json"
    )
    assert found.ai_policy is not None and found.ai_policy.own == {"GPTBot": "disallow_all"}
    assert found.final_origin == "https://a.example"
    other = facts(local_store, batch, "b.example")
    assert not other.sitemap.exists and other.sitemap.status_code == 404
    assert "sitemap.xml" not in other.files and not list(iter_broken(local_store, batch))
    inputs = read_markers(local_store, "domain_metadata")[batch.key].inputs
    assert inputs == wanted_inputs(local_store, DOMAIN_METADATA)[batch.key]


@pytest.mark.usefixtures("queued")
def test_a_finished_domain_is_not_fetched_again(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    web = site("a.example") | site("b.example")
    survey(batch, web, store=local_store, queue=queue)
    report, fetcher = survey(batch, {}, store=local_store, queue=queue)
    assert fetcher.requests == [] and report.surveyed == 0 and report.outcomes == {"ok": 2}


@pytest.mark.usefixtures("queued")
def test_a_timeout_is_tried_again_then_left_unmarked_and_taken_up_by_the_next_run(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    slow = FetchError("slow", reason="timeout")
    web = site("a.example") | {"https://b.example/robots.txt": slow}
    report, fetcher = survey(batch, web, store=local_store, queue=queue)
    assert fetcher.requests.count("https://b.example/robots.txt") == 3 and report.retries == 2
    assert report.outcomes == {"ok": 1, "timeout": 1}
    assert names(local_store, f"{PROD}/b.example") == ["domain_metadata.json"]
    unfinished = facts(local_store, batch, "b.example")
    assert (unfinished.outcome, unfinished.final, unfinished.robots.error) == (
        "timeout",
        False,
        "timeout",
    )
    assert unfinished.ai_policy is None
    report, fetcher = survey(batch, site("b.example"), store=local_store, queue=queue)
    assert report.outcomes == {"ok": 2} and "https://a.example/robots.txt" not in fetcher.requests
    assert facts(local_store, batch, "b.example").final


@pytest.mark.usefixtures("queued")
def test_what_an_unfinished_survey_left_behind_is_removed(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    local_store.put(f"{PROD}/a.example/sitemap.xml", b"old")
    gone = response("https://a.example/sitemap.xml", status=410)
    web = site("a.example", b"", gone) | site("b.example")
    survey(batch, web, store=local_store, queue=queue)
    assert "sitemap.xml" not in names(local_store, f"{PROD}/a.example")


@pytest.mark.usefixtures("queued")
def test_a_crash_between_marker_and_settling_is_recognised_by_the_marker(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    web = site("a.example") | site("b.example")
    survey(batch, web, store=local_store, queue=queue)
    queue.reopen(batch.key, now=0)
    with queue._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE domain_queue SET state = 'claimed', lease_until = 0")
    report, fetcher = survey(batch, {}, store=local_store, queue=queue)
    assert fetcher.requests == [] and report.finished_before == 2
    assert report.outcomes == {"ok": 2}


@pytest.mark.usefixtures("queued")
def test_a_store_that_fails_ends_the_survey_with_its_own_error_and_the_next_run_goes_on(
    tmp_path: Path, local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    web = site("a.example") | site("b.example")
    in_the_way = tmp_path / "root" / "prod"
    in_the_way.write_bytes(b"a file where a folder should be")
    short = SurveyOptions(lease_seconds=0.2)
    with pytest.raises(StorageError):
        survey(batch, web, store=local_store, queue=queue, options=short)
    in_the_way.unlink()
    report, _ = survey(batch, web, store=local_store, queue=queue, options=short)
    assert report.outcomes == {"ok": 2}
    assert list(iter_broken(local_store, batch)) == []


@pytest.mark.usefixtures("queued")
def test_broken_artifacts_are_found(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    survey(batch, site("a.example", b"x") | site("b.example"), store=local_store, queue=queue)
    local_store.put(f"{PROD}/a.example/robots.txt", b"tampered")
    local_store.delete([f"{PROD}/b.example/sitemap.xml"])
    assert list(iter_broken(local_store, batch)) == [
        f"{PROD}/a.example/robots.txt: bytes differ from the recorded sha256",
        f"{PROD}/b.example/sitemap.xml: missing",
    ]
    local_store.delete([f"{PROD}/a.example/domain_metadata.json"])
    assert "no domain_metadata.json" in next(iter_broken(local_store, batch))


def test_a_gzipped_sitemap_is_stored_inflated(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    import_file(local_store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    web = {
        "https://a.example/robots.txt": b"Sitemap: https://a.example/s.xml.gz",
        "https://a.example/s.xml.gz": gzip.compress(URLSET),
    }
    survey(batch, web, store=local_store, queue=queue)
    assert local_store.read(f"{PROD}/a.example/sitemap.xml") == URLSET
    found = facts(local_store, batch, "a.example").sitemap
    assert found.inflated and found.found_by == "robots" and found.url_count == 1
