"""How a store is cut and built."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a builder may use and how large the pieces become.

    `buckets` counts for a new store only; `memory_bytes` bounds the whole process, `scratch` is the
    folder for spilled runs (None: the system's own).
    """

    buckets: int = 1000
    memory_bytes: int = 1 << 30
    scratch: str | None = None
    # Stage 1: the source design's own number.
    records_per_file: int = 100_000
    # Stage 2: about the largest file that is still pleasant to copy around.
    file_bytes: int = 2_000_000_000
    # Segments of like size that are merged into one: 8 rewrites each byte 2.9 times in a year.
    fan: int = 8
    # How long files that no index names any more stay for those who still read them.
    grace: timedelta = timedelta(days=7)
    # Batches taken up in one generation, so that the merge keeps its read buffers large.
    batches_per_merge: int = 512
    uploads: int = 8
