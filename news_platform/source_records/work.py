"""What a worker process does with one snapshot: everything that bad input could hang or crash."""

from collections import Counter
from dataclasses import dataclass, field

from news_platform.datasets.source_records import SourceRecord
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import Segmented, failed, segment
from news_platform.source_records.snapshot import Snapshot, parse_snapshot
from news_platform.source_records.verdicts import ATTACHED

TARGET = "news_platform.source_records.worker:segment_job"


@dataclass(frozen=True, slots=True)
class Job:
    """One snapshot and how to cut it."""

    snapshot: Snapshot
    options: SegmentOptions


@dataclass(frozen=True, slots=True)
class PageResult:
    """The records of a page, or its one failed record, and what became of its blocks.

    `languages` counts every block whose language was judged, kept or not.
    """

    records: tuple[SourceRecord, ...]
    failure: SourceRecord | None = None
    blocks: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


def segment_job(job: Job) -> PageResult:
    """Cut one snapshot and count."""
    return page_result(segment_snapshot(job.snapshot, job.options))


def segment_snapshot(snapshot: Snapshot, options: SegmentOptions) -> Segmented:
    """Cut one snapshot into records, or tell why not."""
    page, error = parse_snapshot(snapshot)
    return failed(page, error) if error else segment(page, options)


def lost_page(snapshot: Snapshot, error: str) -> PageResult:
    """Return the result of a snapshot whose worker was lost; its body is not looked at again."""
    page, _ = parse_snapshot(
        Snapshot(snapshot.path, snapshot.institution, b"{}", snapshot.url, snapshot.modified_at)
    )
    return page_result(failed(page, error))


def page_result(done: Segmented) -> PageResult:
    """Count what became of a page's blocks; attached headings are context, not lost."""
    if done.error:
        return PageResult((), failure=done.records[0])
    reasons = Counter(verdict.reason for verdict in done.verdicts if verdict.reason)
    attached = reasons.pop(ATTACHED, 0)
    return PageResult(
        done.records,
        blocks=len(done.verdicts) - attached,
        dropped=Counter({reason: count for reason, count in reasons.items() if reason}),
        languages=Counter(v.language.code for v in done.verdicts if v.language and v.language.code),
    )
