"""The work of a process that a test kills: build the day and the month again and again.

python -m news_platform_tests.search.kill_target ROOT
"""

import sys
from datetime import UTC, datetime

from news_platform.search.pipeline import build_day, build_month, wanted_months
from news_platform.storage.objects.store import open_store

DAY = "2025-10-02"


def main(root: str) -> None:
    """Build without end."""
    store = open_store(root)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        build_day(store, DAY, now=datetime.now(UTC))
        for month in wanted_months(store, after_days=7):
            build_month(store, month, now=datetime.now(UTC))


if __name__ == "__main__":
    main(sys.argv[1])
