"""The options of staging and building."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Limits and sizes of a build.

    `buckets` applies to a new store only. `memory_bytes` bounds the whole process. `scratch` is the
    folder for spilled runs; None is the system's temporary folder. A build that would remove more
    than `removal_share` of the store's records is refused unless `allow_removal` is set.
    """

    buckets: int = 1000
    memory_bytes: int = 1 << 30
    scratch: str | None = None
    # Of a staged file; the number of the source design.
    records_per_file: int = 100_000
    # Of a data file: about the largest that is still convenient to copy.
    file_bytes: int = 2_000_000_000
    # Segments of similar size that are merged into one. With 8, each byte is rewritten 2.9 times
    # in a year; with "merge all above 4 fragments" it was 47 times.
    fan: int = 8
    # How long files that the newest index does not name stay for readers of an older one.
    grace: timedelta = timedelta(days=7)
    # Batches added in one generation, so that each source of the merge has a large read buffer.
    batches_per_merge: int = 512
    uploads: int = 8
    # Retention and takedowns remove single days and domains; more is most likely a lost input.
    removal_share: float = 0.1
    allow_removal: bool = False
