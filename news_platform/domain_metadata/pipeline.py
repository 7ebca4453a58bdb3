"""The survey of domains in two steps: research files to queue messages, messages to stored facts.

`queue_batch` reads the research files of a batch and puts one message per domain into the queue.
`survey_batch` surveys every domain of the batch that has no final outcome yet. Both can be repeated
at any time: accepted files and finished domains are skipped.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from news_platform.datasets.domain_metadata import DOMAIN_METADATA
from news_platform.datasets.research_datasets import (
    DOMAIN_QUEUE,
    RAW_FOLDER,
    DomainQueueMessage,
    PartitionInfo,
    SeedQueueMessage,
)
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.domain_metadata.consumer import (
    Consumer,
    SurveyContext,
    SurveyOptions,
    SurveyReport,
)
from news_platform.domain_metadata.queue import AcceptedFile, DomainQueue
from news_platform.domain_metadata.raw_files import (
    DroppedResearchRecord,
    batch_fingerprint,
    is_taken_down,
    iter_messages,
    iter_seeds,
    mark_read,
    misplaced_files,
    parse_records,
    sha256,
    write_dropped,
)
from news_platform.domain_metadata.results import reopen_for_repair
from news_platform.errors import InputError
from news_platform.isolation.boundary import boundary
from news_platform.storage.commit.markers import (
    fingerprint,
    read_markers,
    read_report,
    report_scope,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.leases import process_owner
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.takedowns.match import Takedowns
from news_platform.web.fetch import FetchOptions, WebFetcher

_log = logging.getLogger(__name__)

QUEUE_DATASET = DOMAIN_QUEUE.name
METADATA_DATASET = "domain_metadata"
# The threads mostly wait for the object store, so there are more of them than cores.
_THREADS = 32
# Python collects cycles after every 700 new objects; a survey creates that many per domain and
# almost no cycles. Collecting this rarely saves a tenth of its CPU and costs a few megabytes.
_OBJECTS_BETWEEN_COLLECTIONS = 20_000


@dataclass(slots=True)
class QueueReport:
    """Counts of queueing a batch; `failed` has the reason for each file that was not accepted."""

    batch: str
    files: int = 0
    files_known: int = 0
    records: int = 0
    messages: int = 0
    new_domains: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def queue_batch(
    batch: PartitionInfo, *, store: ObjectStore, queue: DomainQueue, now: datetime
) -> QueueReport:
    """Put every domain of the batch's research files into the queue, then mark the files as read.

    A file that is invalid, or that changed after it was accepted, does not stop the others.
    """
    # Computed before reading: a file that arrives meanwhile makes the batch stale, not overlooked.
    inputs = batch_fingerprint(store, batch)
    report = QueueReport(batch.key)
    for seed in iter_seeds(store, batch):
        report.files += 1
        with boundary("research file", seed.raw_file_path) as unit:
            _queue_file(seed, store=store, queue=queue, now=now, report=report)
        if unit.cause:
            report.failed[seed.raw_file_path] = unit.cause
    _log.info("queued %s: %d new domains", batch.key, report.new_domains)
    write_marker(store, QUEUE_DATASET, batch.key, inputs=inputs, report=asdict(report))
    return report


def refused_files(store: ObjectStore) -> dict[str, str]:
    """Return the research files of all batches that could not be queued, with the reason."""
    found: dict[str, str] = {}
    for marker in read_markers(store, QUEUE_DATASET).values():
        failed = read_report(store, marker).get("failed")
        found.update(failed if isinstance(failed, dict) else {})
    return found


def failed_files(batch: PartitionInfo, *, store: ObjectStore, queue: DomainQueue) -> dict[str, str]:
    """Return why files of a batch are not accepted, or no longer what was accepted; read only."""
    marker = read_markers(store, QUEUE_DATASET).get(batch.key)
    refused = read_report(store, marker).get("failed") if marker else None
    reasons = refused if isinstance(refused, dict) else {}
    folder = f"{RAW_FOLDER}/{batch.folder}/"
    misnamed = misplaced_files(store)
    failed = {path: why for path, why in misnamed.items() if path.startswith(folder)}
    for seed in iter_seeds(store, batch):
        path, known = seed.raw_file_path, queue.accepted_file(seed.raw_file_path)
        if known is None:
            # Without a reason the file is only new: the sensor will request the batch.
            failed |= {path: str(reasons[path])} if path in reasons else {}
            continue
        try:
            _check_unchanged(known, sha256(store.read(path)))
        except InputError as error:
            failed[path] = str(error)
    return failed


def _queue_file(
    seed: SeedQueueMessage,
    *,
    store: ObjectStore,
    queue: DomainQueue,
    now: datetime,
    report: QueueReport,
) -> None:
    path, body = seed.raw_file_path, store.read(seed.raw_file_path)
    known = queue.accepted_file(path)
    if known is not None:
        _check_unchanged(known, sha256(body))
        report.files_known += 1
    else:
        _accept(seed, body, store=store, queue=queue, now=now, report=report)
    # Also for a known file: an earlier run may have died after accepting it.
    mark_read(store, path)


def _check_unchanged(known: AcceptedFile, found: str) -> None:
    if known.sha256 != found:
        cause = f"expected sha256 {known.sha256[:12]}…, found {found[:12]}…"
        cure = "restore it and import the new content as another file"
        raise InputError(
            f"{known.path!r} changed after it was accepted: {cause}; {cure}", thing=known.path
        )


def _accept(
    seed: SeedQueueMessage,
    body: bytes,
    *,
    store: ObjectStore,
    queue: DomainQueue,
    now: datetime,
    report: QueueReport,
) -> None:
    path = seed.raw_file_path
    records = parse_records(body, path=path)
    found = list(iter_messages(records, seed=seed))
    takedowns = Takedowns.read(store, now=now)
    wanted = [one for one in found if isinstance(one, DomainQueueMessage)]
    messages = [one for one in wanted if not takedowns.covers_domain(one.registrable_domain)]
    if len(messages) < len(wanted):
        refused = report.dropped.get(TAKEN_DOWN, 0) + len(wanted) - len(messages)
        report.dropped[TAKEN_DOWN] = refused
    dropped = [
        one
        for one in found
        if isinstance(one, DroppedResearchRecord) and not is_taken_down(one.record, takedowns)
    ]
    if dropped:
        write_dropped(store, path, dropped)
    file = AcceptedFile(
        path, seed.partition_info.key, sha256(body), len(records), len(messages), len(dropped)
    )
    report.new_domains += queue.accept(file, messages, at=now.timestamp())
    report.records += len(records)
    report.messages += len(messages)
    for one in dropped:
        report.dropped[one.reason] = report.dropped.get(one.reason, 0) + 1


def survey_over_web(
    batch: PartitionInfo,
    *,
    web: FetchOptions,
    queue: DomainQueue,
    store: ObjectStore,
    clock: Callable[[], datetime],
    seconds: Callable[[], float],
    worker: str,
    options: SurveyOptions,
) -> SurveyReport:
    """Survey a batch over HTTP; for callers without an event loop.

    `seconds` is read once, at the start.
    """
    at_once = max(web.max_connections, options.domains_at_once)
    paused = replace(web, pause_seconds=options.pause_seconds, max_connections=at_once)

    async def go() -> SurveyReport:
        async with WebFetcher(paused) as fetcher:
            context = SurveyContext(
                queue, store, fetcher, clock, steady_seconds(seconds()), process_owner(worker)
            )
            return await survey_batch(batch, context=context, options=options)

    with _infrequent_gc():
        return asyncio.run(go())


def steady_seconds(now: float) -> Callable[[], float]:
    """Return a clock that starts at `now` and runs with the event loop's.

    If the machine's clock jumps during a survey, leases neither end early, which would survey
    their domains twice, nor last for days.
    """
    loop_time = asyncio.get_running_loop().time
    offset = now - loop_time()
    return lambda: offset + loop_time()


@contextmanager
def _infrequent_gc() -> Iterator[None]:
    """Collect cycles rarely inside the block, and never among the objects that existed before."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def survey_batch(
    batch: PartitionInfo, *, context: SurveyContext, options: SurveyOptions
) -> SurveyReport:
    """Survey every domain of the batch that has no final outcome or needs repair."""
    # asyncio's default executor has four threads more than cores, too few for writes to a bucket.
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="survey")
    asyncio.get_running_loop().set_default_executor(pool)
    now = context.seconds()
    damaged = reopen_for_repair(batch, store=context.store, queue=context.queue, now=now)
    if damaged:
        message = "%s: files of %d domains are missing or changed; surveying them again"
        _log.warning(message, batch.key, len(damaged))
    inputs = wanted_inputs(context.store, DOMAIN_METADATA).get(batch.key, fingerprint([]))
    # A survey may last for hours: what is taken down meanwhile goes again.
    with cleaned_later(context.store, {METADATA_DATASET: [batch.key]}):
        report = await Consumer(batch, context=context, options=options).run()
        _log.info("surveyed %s: %s", batch.key, report.outcomes)
        found = asdict(report)
        # The tables follow the marker's name, and a survey may be repeated with another result.
        scope = report_scope(found)
        write_marker(
            context.store, METADATA_DATASET, batch.key, inputs=inputs, report=found, scope=scope
        )
    return report
