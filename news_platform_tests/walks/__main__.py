"""Write both walks into docs/architecture.md: `python -m news_platform_tests.walks`."""

import tempfile
from pathlib import Path

from news_platform_tests.walks.record import WALKS, render_walk, write_page_walk


def main() -> None:
    """Record each walk and replace it in the page."""
    for name, record in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_page_walk(name, render_walk(record(Path(folder))))


if __name__ == "__main__":
    main()
