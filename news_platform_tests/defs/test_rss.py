"""The rss assets on the sample world: each materialises, and a second run does nothing."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from news_platform.cli.main import main
from news_platform.defs import rss, rss_checks
from news_platform.defs.graph import definitions_of
from news_platform.defs.rss import (
    ARTICLES_RULE,
    FEEDS_RULE,
    PENDING_RULE,
    collect_sitemap_articles,
    run_articles,
    run_feeds,
    run_pending_articles,
)
from news_platform.resources import Resources
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.ledger.status import outdated_articles, overdue_locks
from news_platform.rss.ledger.tables import FEEDS, RAW
from news_platform.rss.ledger.transactions import newest_seq, write_transaction
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import Settings
from news_platform.storage.commit.root import pause, resume
from news_platform.takedowns.requests import list_pending
from news_platform_tests.rss.ledger_rows import change_article
from news_platform_tests.takedowns.asked import ask

ASSETS = ("feeds", "pending_articles", "articles")
RULES = (FEEDS_RULE, PENDING_RULE, ARTICLES_RULE)


@dataclass(frozen=True)
class Shell:
    """The definitions of rss over one sample root."""

    settings: Settings
    resources: Resources
    instance: dg.DagsterInstance

    def build(self, asset: str, **config: str) -> dg.ExecuteInProcessResult:
        shell = dg.Definitions(
            resources={"platform": SampleResources(self.settings, frozen_clock=True)},
            executor=dg.in_process_executor,
        )
        job = dg.Definitions.merge(
            definitions_of(rss, rss_checks), shell
        ).resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            asset_selection=[dg.AssetKey(asset)],
            instance=self.instance,
            run_config={"ops": {asset: {"config": config}}} if config else None,
        )

    def metadata(self, asset: str) -> dict[str, object]:
        event = self.instance.get_latest_materialization_event(dg.AssetKey(asset))
        assert event is not None and event.asset_materialization is not None
        return {name: item.value for name, item in event.asset_materialization.metadata.items()}


@pytest.fixture(scope="module")
def shell(sample_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Materialise all assets of rss once over a sample root."""
    root = tmp_path_factory.mktemp("rss") / "root"
    settings = Settings(root=str(root), sample=True, sample_world=str(sample_world))
    resources = SampleResources(settings, frozen_clock=True)
    place_inputs(sample_world, resources.data_root.store)
    with dg.DagsterInstance.ephemeral() as instance:
        built = Shell(settings, resources, instance)
        for rule in RULES:
            assert rule.stale(resources).keys() == {"all"}
            assert built.build(rule.asset).success
        yield built


def test_every_asset_reports_what_it_did(shell: Shell) -> None:
    feeds, pending, articles = (shell.metadata(asset) for asset in ASSETS)
    assert int(str(feeds["added"])) >= 3
    assert int(str(pending["new_articles"])) >= 30
    assert int(str(articles["stored"])) >= 20
    for shown in ("articles_by_status", "duplicates", "errors_by_host"):
        assert "|---|" in str(articles[shown])
    assert "data:image/png" in str(articles["articles_per_hour"])


def test_nothing_is_left_to_do_after_one_run(shell: Shell) -> None:
    before = newest_seq(shell.resources.ledger.engine)
    assert [rule.stale(shell.resources) for rule in RULES] == [{}, {}, {}]
    assert newest_seq(shell.resources.ledger.engine) == before


def test_the_daily_file_holds_the_stored_articles(shell: Shell) -> None:
    folder = shell.resources.data_root.store.local_folder
    assert folder is not None
    frame = pl.read_parquet(folder / "articles/date=2025-11-03/part-0.parquet")
    assert frame.height == int(str(shell.metadata("articles")["dagster/row_count"]))
    assert frame["url_hash"].n_unique() == frame.height == frame["text_hash"].n_unique()


def _texts(shell: Shell) -> dict[int, tuple[str, str]]:
    chosen = sa.select(RAW.c.row_id, RAW.c.clean_text, RAW.c.extractor_version)
    with shell.resources.ledger.engine.begin() as connection:
        found = connection.execute(chosen.where(RAW.c.status == "stored", RAW.c.page_ref != ""))
        return {row_id: (text, version) for row_id, text, version in found.all()}


@pytest.mark.parametrize(
    ("config", "reextracted"),
    [({"redo": "missing"}, 0), ({}, 1), ({"redo": "all"}, 2)],
    ids=["missing", "by default", "all"],
)
def test_a_run_extracts_outdated_articles_again_from_their_kept_pages(
    shell: Shell, config: dict[str, str], reextracted: int
) -> None:
    """A row of an older version has another text; so has one of this version, for `all`."""
    before = _texts(shell)
    old, wrong = list(before)[:2]
    engine = shell.resources.ledger.engine
    change_article(engine, old, clean_text="Old text", extractor_version="1")
    change_article(engine, wrong, clean_text="Wrong text")
    assert outdated_articles(engine) == {"kept page": 1}
    try:
        assert shell.build("articles", **config).success
        after = _texts(shell)
        assert sum(after[one] == before[one] for one in (old, wrong)) == reextracted
        assert (after[old] == before[old]) == (reextracted > 0), "the outdated one first"
        left = 0 if reextracted else 1
        assert outdated_articles(engine) == ({"kept page": 1} if left else {})
        assert shell.metadata("articles")["articles_outdated"] == left
    finally:
        for one in (old, wrong):
            change_article(engine, one, clean_text=before[one][0], extractor_version=before[one][1])


def test_an_outdated_article_whose_page_has_expired_is_counted_and_kept(shell: Shell) -> None:
    engine = shell.resources.ledger.engine
    one, (text, version) = next(iter(_texts(shell).items()))
    with engine.begin() as connection:
        of_row = RAW.c.row_id == one
        page = connection.execute(sa.select(RAW.c.page_ref).where(of_row)).scalar_one()
    change_article(engine, one, extractor_version="1", page_ref="")
    try:
        assert shell.build("articles").success
        assert outdated_articles(engine) == {"no page": 1}
    finally:
        change_article(engine, one, extractor_version=version, page_ref=page)
    assert _texts(shell)[one] == (text, version)


def test_the_schedule_extracts_nothing_again(shell: Shell, tmp_path: Path) -> None:
    """A new version of the extractor must not make a run of five minutes redo the ledger."""
    engine = shell.resources.ledger.engine
    one = next(iter(_texts(shell)))
    change_article(engine, one, status="pending")
    try:
        with (
            dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
            dg.build_schedule_context(
                instance=instance, resources={"platform": shell.resources}
            ) as context,
        ):
            request = run_articles(context)
    finally:
        change_article(engine, one, status="stored")
        assert shell.build("articles", redo="missing").success, "nothing is due for others"
    assert isinstance(request, dg.RunRequest)
    assert request.run_config == {"ops": {"articles": {"config": {"redo": "missing"}}}}


def test_a_lock_that_nobody_takes_over_is_told(shell: Shell) -> None:
    engine = shell.resources.ledger.engine
    long_ago = shell.resources.clock.now() - timedelta(hours=5)
    with write_transaction(engine) as change:
        change.connection.execute(
            sa.insert(RAW).values(
                feed_url="f",
                article_url="u",
                article_url_canon="u",
                url_hash="h",
                found_at=long_ago,
                status="processing",
                lock_owner="dead",
                lock_at=long_ago,
                changed_seq=change.seq,
            )
        )
    try:
        now = shell.resources.clock.now()
        assert overdue_locks(engine, lease_seconds=600, now=now) == ["u"]
    finally:
        with engine.begin() as connection:
            connection.execute(sa.delete(RAW).where(RAW.c.url_hash == "h"))


def test_schedules_skip_when_paused_or_when_nothing_is_due(shell: Shell, tmp_path: Path) -> None:
    data_root = shell.resources.data_root

    def tick(schedule: dg.ScheduleDefinition) -> object:
        with (
            dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
            dg.build_schedule_context(
                instance=instance, resources={"platform": shell.resources}
            ) as context,
        ):
            return schedule(context)

    assert isinstance(tick(run_articles), dg.SkipReason)
    assert isinstance(tick(run_feeds), dg.RunRequest)
    with shell.resources.ledger.engine.begin() as connection:
        connection.execute(sa.update(FEEDS).values(next_poll_at=None))
    assert isinstance(tick(run_pending_articles), dg.RunRequest)
    pause(data_root.store)
    try:
        assert isinstance(tick(run_feeds), dg.SkipReason)
    finally:
        resume(data_root.store)


@pytest.mark.parametrize("writer", ["articles", "poll", "work --worker-id one", "sitemaps"])
def test_what_is_collected_while_a_request_waits_is_cleaned_later(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    shutil.copytree(shell.settings.root, tmp_path / "root")
    settings = shell.settings.model_copy(update={"root": str(tmp_path / "root")})
    resources = SampleResources(settings, frozen_clock=True)
    store = resources.data_root.store
    ask(store, "domain", "gone.example")
    if writer in ASSETS:
        assert Shell(settings, resources, shell.instance).build(writer).success
    elif writer == "sitemaps":
        assert collect_sitemap_articles.execute_in_process(
            resources={"platform": resources}, instance=shell.instance
        ).success
    else:
        monkeypatch.setenv("NEWS_PLATFORM_SAMPLE", "1")
        monkeypatch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(settings.sample_world))
        done = CliRunner().invoke(main, ["rss", *writer.split(), "--root", settings.root or ""])
        assert done.exit_code == 0, done.output
    marked = {(name, one) for name, partitions in WHOLE_LEDGER.items() for one in partitions}
    assert marked <= set(list_pending(store))
