"""Sixty days of troubled sites, read by processes that are killed at random.

Every story ends stored once with its own last text, or has a named reason; after the sweep no file
is without its row.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.rss.article_files import PAGES_FOLDER, OwnedFiles
from news_platform.rss.ledger.tables import ARTICLES_INDEX
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.urls import url_hash
from news_platform_tests.cli.runner import Commands
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.replay import FULL_TEXTS, NOTICE, Plan, TroubledSite, live
from news_platform_tests.rss.stages import FORKS, register, rows

KILLED = -9


def replay(plan: Plan, ledger_url: str, root: Path) -> int:
    """Read all days; return how many processes were killed on the way."""
    root.mkdir()
    kills = 0
    while True:
        process = FORKS.Process(target=live, args=(plan, ledger_url, root, kills))
        process.start()
        process.join()
        if process.exitcode == 0:
            return kills
        assert process.exitcode == KILLED, process.exitcode
        kills += 1


def last_listed(
    root: Path, sites: list[TroubledSite]
) -> Iterator[tuple[TroubledSite, int, datetime]]:
    """Yield the stories that a poll could see, with the last time when one could."""
    by_host, last = {site.host: site for site in sites}, dict[tuple[str, int], datetime]()
    for line in (root / "polls.log").read_text().splitlines():
        host, _, moment = line.partition(" ")
        now = datetime.fromisoformat(moment)
        last |= {(host, story.number): now for story in by_host[host].listed(now)}
    return ((by_host[host], number, now) for (host, number), now in last.items())


def check_rows(engine: sa.Engine, root: Path, sites: list[TroubledSite]) -> Counter[str]:
    """Assert that every story is stored once with its own last text, or has a reason."""
    found = {row.row_id: row for row in rows(engine)}
    index = {row.url_hash: found[row.row_id_raw] for row in rows(engine, ARTICLES_INDEX)}
    tokens = {story.words[0] for site in sites for story in site.stories}
    texts, stored = open_store(str(root / FULL_TEXTS)), Counter[str]()
    for row in found.values():
        assert row.status not in ("processing", "pending"), row.row_id
        if row.status == "stored":
            own = tokens & set(re.findall(r"\w+", row.clean_text)) or {row.title.split()[0]}
            assert len(own) == 1, (row.row_id, own)
            stored.update(own)
    assert [token for token, count in stored.items() if count > 1] == []
    became: Counter[str] = Counter()
    for site, number, last in last_listed(root, sites):
        story = site.stories[number]
        row = index[url_hash(f"http://{site.host}{story.path(last)}")]
        became[row.status] += 1
        if row.status != "stored":
            assert row.error_msg, row
            continue
        if story.is_placeholder and story.edited_at and last < story.edited_at:
            continue  # what came later was not announced before the end
        texts_of_row = (row.clean_text, read_full_text(texts, row.url_hash))
        is_last = all(story.topic(last) in text for text in texts_of_row)
        assert is_last or story.is_twin or row.error_msg, (story, row.clean_text)
        assert NOTICE not in row.clean_text or row.error_msg, story
    return became


def sweep_files(engine: sa.Engine, ledger_url: str, root: Path) -> int:
    """Let retention delete the files of killed workers, and assert that it leaves the others."""
    for folder in (FULL_TEXTS, PAGES_FOLDER):
        (root / folder / "of-a-worker-that-was-killed.gz").write_bytes(b"")
    for file in (root / "articles").rglob("*.*"):
        os.utime(file, times=(old := time.time() - 3 * 86_400, old))
    environ = {"NEWS_PLATFORM_LEDGER_URL": ledger_url, "NEWS_PLATFORM_PAGES_KEEP_DAYS": "36500"}
    deleted = Commands("retention", environ).json(root, "apply")
    owned = OwnedFiles.read(engine)
    for folder, files in ((FULL_TEXTS, owned.full_texts), (PAGES_FOLDER, owned.pages)):
        assert {info.path for info in open_store(str(root / folder)).list()} == files
    return sum(one["objects"] for one in deleted)


def check(plan: Plan, ledger_url: str, root: Path) -> tuple[Counter[str], int, int]:
    """Replay a plan; return what its stories became, the kills, and the files swept away."""
    engine = open_engine(ledger_url)
    migrate(engine)
    sites = plan.make_sites()
    register(engine, *(f"http://{site.host}/feed" for site in sites))
    kills = replay(plan, ledger_url, root)
    became = check_rows(engine, root, sites)
    swept = sweep_files(engine, ledger_url, root)
    engine.dispose()
    return became, kills, swept


def test_six_days_of_eight_sites(ledger_url: str, tmp_path: Path) -> None:
    plan = Plan(sites=8, days=6, seed=3, kills=4, kill_within=100)
    became, kills, swept = check(plan, ledger_url, tmp_path / "root")
    assert kills == plan.kills
    assert swept >= 2
    assert became["stored"] > 20, became


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_sixty_days_of_three_hundred_sites(ledger_url: str, tmp_path: Path, seed: int) -> None:
    plan = Plan(sites=100, days=60, seed=seed, kills=20, kill_within=1_000)
    became, kills, swept = check(plan, ledger_url, tmp_path / "root")
    assert kills == plan.kills
    assert swept >= 2
    assert became["stored"] > 2_000, became
