"""How much a month of the crawl writes beyond what it adds, and how long its days wait.

Dagster's own daemon code follows 18 WARCs a day on a simulated clock; 3 % of them come up to three
days late (`news_platform_tests/year`). Bytes are those of stage 1 and of the batches that the store
takes over; its compaction, which `domain_store` measures, is not counted.
"""

import tempfile
from datetime import timedelta
from pathlib import Path

from news_platform_tests.year.running import CALM_MONTH, simulate

_MOST_BYTES = 1.5
_LONGEST_WAIT = timedelta(hours=1)


def main() -> None:
    """Print the figures of the month beside what they may be at most."""
    with tempfile.TemporaryDirectory() as folder:
        figures = simulate(Path(folder), CALM_MONTH).figures
    runs, ideal = sum(figures["runs"].values()), sum(figures["ideal"].values())
    print(f"days                        {CALM_MONTH.days:>8}")
    print(f"runs                        {runs:>8}  (ideal {ideal})")
    print(f"bytes written per byte added{figures['byte_ratio']:>8.2f}  (at most {_MOST_BYTES})")
    wait = timedelta(seconds=figures["longest_wait"])
    print(f"longest wait, settled day   {wait!s:>8}  (at most {_LONGEST_WAIT})")
    print(f"differences from one build  {len(figures['different']):>8}")
