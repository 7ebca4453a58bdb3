"""Ten days of a crawl made of the sample's three, and the resources that read them.

`deploy.ten_days_location` is the code location over them; it is mounted into containers.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

from news_platform.resources import Crawl
from news_platform.sample.crawl import listing
from news_platform.sample.world import DAYS as SAMPLE_DAYS
from news_platform.sample.world import SampleResources

DAYS = tuple(SAMPLE_DAYS[-1] - timedelta(days=number) for number in range(9, -1, -1))


@dataclass(frozen=True)
class TenDays(SampleResources):
    """The resources of the sample, over the crawl that NEWS_PLATFORM_CRAWL_URL names."""

    @cached_property
    def crawl(self) -> Crawl:
        """Return the crawl of the settings instead of the sample's own."""
        return Crawl(self.data_root)

    @property
    def partition_days(self) -> tuple[date, ...]:
        """Return the ten days."""
        return DAYS


def write_ten_days(world: Path, crawl: Path) -> None:
    """Write the WARCs of a sample world under names of ten days, and their listings."""
    paths: list[str] = []
    for number, day in enumerate(DAYS):
        paths += _copy(world, crawl, of=SAMPLE_DAYS[number % len(SAMPLE_DAYS)], to=day)
    for month in {path.rpartition("/")[0] for path in paths}:
        of_month = (path for path in paths if path.startswith(month))
        (crawl / month / "warc.paths.gz").write_bytes(listing(of_month))


def _copy(world: Path, crawl: Path, *, of: date, to: date) -> list[str]:
    """Copy the WARCs of a day under names of another; return their paths in the crawl."""
    folder = f"crawl-data/CC-NEWS/{to:%Y}/{to:%m}"
    (crawl / folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for file in sorted((world / "crawl").rglob(f"CC-NEWS-{of:%Y%m%d}*.warc.gz")):
        path = f"{folder}/{file.name.replace(f'{of:%Y%m%d}', f'{to:%Y%m%d}')}"
        (crawl / path).write_bytes(file.read_bytes())
        paths.append(path)
    return paths
