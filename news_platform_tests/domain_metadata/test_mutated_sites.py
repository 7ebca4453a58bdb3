"""Mutations of real robots files and sitemaps, headers included, hurt the survey of no other."""

import logging
import random
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext, SurveyOptions, SurveyReport
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import open_store
from news_platform.web.fetch import WebFetcher
from news_platform_tests.domain_metadata.test_every_step import (
    GOOD,
    ROBOTS,
    good_files,
    new_queue,
    urlset,
)
from news_platform_tests.domain_metadata.test_pipeline import NOW, research
from news_platform_tests.isolation.mutations import (
    MemoryGrowth,
    check_log,
    http_answer,
    mutated_one,
    real_samples,
)
from news_platform_tests.rss.stages import fetch_all
from news_platform_tests.web.site import Answer, body

# One try, and an end for a mutated crawl delay.
OPTIONS = SurveyOptions(max_tries=1, lease_seconds=300, domain_seconds=20)
# So many sites that waiting for the slow ones does not fill the soak.
_GROUP = 200


def good_sites() -> dict[str, Answer]:
    robots = {f"{host}/robots.txt": body(ROBOTS) for host in GOOD}
    xml = {"Content_Type": "application/xml"}
    return robots | {f"{host}/sitemap.xml": body(urlset(host), **xml) for host in GOOD}


def mutations(count: int, seed: int) -> Iterator[dict[str, Answer]]:
    """Yield groups of sites, each with a mutated robots file and a mutated sitemap."""
    dice = random.Random(seed)
    robots = [ROBOTS, *real_samples("robots/real")]
    sitemaps = [urlset("a.example"), *real_samples("sitemaps/real")]
    for start in range(0, count // 2, _GROUP):
        hosts = [f"bad{n}.example" for n in range(start, min(start + _GROUP, count // 2))]
        first = {
            f"{host}/robots.txt": http_answer(mutated_one(robots, dice), dice) for host in hosts
        }
        yield first | {
            f"{host}/sitemap.xml": http_answer(mutated_one(sitemaps, dice), dice) for host in hosts
        }


def survey_group(
    folder: Path, url: str, batch: PartitionInfo, bad: dict[str, Answer]
) -> dict[str, Any]:
    """Survey the good and the bad sites, and return the files of the good ones."""
    store = open_store(mkdtemp(dir=folder))
    domains = {place.partition("/")[0] for place in bad} | set(GOOD)
    import_file(store, batch, name="x.json", body=research(*sorted(domains)))
    with new_queue(url) as queue:
        queue_batch(batch, store=store, queue=queue, now=NOW)

        def survey(fetcher: WebFetcher) -> Awaitable[SurveyReport]:
            context = SurveyContext(queue, store, fetcher, lambda: NOW, time.time, "w")
            return survey_batch(batch, context=context, options=OPTIONS)

        report = fetch_all({**good_sites(), **bad}, survey)
    assert sum(report.outcomes.values()) == len(domains)
    assert "internal_error" not in report.outcomes, report.outcomes
    return good_files(store)


def survey_mutations(
    folder: Path,
    url: str,
    batch: PartitionInfo,
    caplog: pytest.LogCaptureFixture,
    *,
    count: int,
    seed: int,
) -> None:
    memory, undisturbed = MemoryGrowth(), survey_group(folder, url, batch, {})
    assert len(undisturbed) >= 3 * len(GOOD)
    for bad in mutations(count, seed):
        assert survey_group(folder, url, batch, bad) == undisturbed
        check_log(caplog)
        memory.sample()
    memory.check()


def test_sixty_mutated_robots_files_and_sitemaps_hurt_no_other(
    tmp_path: Path,
    any_ledger_url: str,
    batch: PartitionInfo,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    survey_mutations(tmp_path, any_ledger_url, batch, caplog, count=60, seed=5)


@pytest.mark.soak
def test_four_thousand_mutated_robots_files_and_sitemaps_hurt_no_other(
    tmp_path: Path,
    any_ledger_url: str,
    batch: PartitionInfo,
    caplog: pytest.LogCaptureFixture,
) -> None:
    survey_mutations(tmp_path, any_ledger_url, batch, caplog, count=4_000, seed=6)
