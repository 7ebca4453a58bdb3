"""From settings to opened resources."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from news_platform.ccnews.pool import CollectOptions
from news_platform.composition.corpus_options import corpus_options
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.domain_metadata.consumer import SurveyOptions
from news_platform.domain_metadata.fetchers import SurveyFetchOptions
from news_platform.domain_metadata.resurvey import ResurveyOptions
from news_platform.domain_store.layout import BuildOptions
from news_platform.errors import ConfigError
from news_platform.resources import (
    DataRoot,
    Resources,
    alarm_options,
    analysis_options,
    build_options,
    collect_options,
    discovery_options,
    open_full_texts,
    open_resources,
    poll_options,
    records_options,
    resurvey_options,
    segment_options,
    sheets_access,
    survey_options,
    sync_options,
    work_options,
    workbook_options,
)
from news_platform.rss.analyses import AnalysisOptions
from news_platform.rss.discovery import DiscoveryOptions
from news_platform.rss.feed_alarms import AlarmOptions
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.sheets.books import SheetAccess, SyncOptions
from news_platform.rss.sheets.workbook import WorkbookOptions
from news_platform.rss.worker import WorkOptions
from news_platform.sample.world import WORLD_NOW, SampleResources, place_inputs, world_folder
from news_platform.setting_sections.features import (
    CcnewsSettings,
    RssSettings,
    SheetsSettings,
    SourceRecordsSettings,
)
from news_platform.settings import Settings
from news_platform.source_records.pipeline import RecordsOptions
from news_platform.storage.commit.root import read_world
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import input_filter
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform.web.fetch import FetchOptions, WebFetcher
from news_platform_tests.takedowns.asked import ask


@pytest.fixture
def sample_resources(tmp_path: Path, sample_world: Path) -> SampleResources:
    settings = Settings(root=str(tmp_path / "root"), sample_world=str(sample_world))
    return SampleResources(settings, frozen_clock=True)


def test_opening_nothing_touches_nothing(tmp_path: Path) -> None:
    open_resources(Settings(root=str(tmp_path / "root")))
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(root="s3://bucket/root"), Resources),
        (Settings(root="s3://bucket/root", sample=True), SampleResources),
        (Settings(root="nowhere", sample=False), Resources),
    ],
    ids=["remote", "remote sample", "real by setting"],
)
def test_no_remote_root_is_read_to_choose_where_that_is_not_allowed(
    settings: Settings, expected: type[Resources]
) -> None:
    assert type(open_resources(settings, may_connect=False)) is expected


@pytest.mark.parametrize(
    ("world", "expected"), [("sample", SampleResources), ("real", Resources), (None, Resources)]
)
def test_a_root_says_itself_which_world_it_holds(
    tmp_path: Path, world: str | None, expected: type[Resources]
) -> None:
    if world:
        (tmp_path / "root.json").write_text(f'{{"format": 3, "contents": "{world}"}}')
    assert type(open_resources(Settings(root=str(tmp_path)))) is expected


def test_real_resources_refuse_a_sample_root(tmp_path: Path) -> None:
    (tmp_path / "root.json").write_text('{"format": 3, "contents": "sample"}')
    with pytest.raises(ConfigError, match="set NEWS_PLATFORM_SAMPLE=1"):
        _ = DataRoot(Settings(root=str(tmp_path))).store


def test_invented_news_never_go_to_google(tmp_path: Path) -> None:
    google = SheetsSettings(service_account="key", spreadsheet_id="b", spreadsheet_title="T")
    emulator = SheetsSettings(spreadsheet_id="b", endpoint="http://127.0.0.1:1")
    root = str(tmp_path)
    given = SampleResources(Settings(root=root, sheets=google)).settings.sheets
    assert given.spreadsheet_id is None and given.spreadsheet_title is None
    assert SampleResources(Settings(root=root, sheets=emulator)).settings.sheets == emulator


def test_a_sample_root_reads_the_sample_crawl(sample_resources: SampleResources) -> None:
    listing = "crawl-data/CC-NEWS/2025/11/warc.paths.gz"
    assert sample_resources.crawl.store.exists(listing)
    assert read_world(sample_resources.data_root.store) == "sample"


def test_a_sample_root_reaches_the_sample_sites_and_nothing_else(
    sample_resources: SampleResources,
) -> None:
    options = sample_resources.web.fetch_options
    host = min(options.host_map)

    async def status() -> int:
        async with WebFetcher(options) as fetcher:
            return (await fetcher.fetch(f"https://{host}/robots.txt")).status

    assert asyncio.run(status()) in (200, 404)
    assert all(host.endswith(".example") for host in options.host_map)


def test_a_real_root_maps_no_host(tmp_path: Path) -> None:
    assert Resources(Settings(root=str(tmp_path))).web.fetch_options.host_map == {}


def test_a_frozen_sample_clock_stands_and_a_running_one_goes_on(
    sample_resources: SampleResources,
) -> None:
    assert sample_resources.clock.now() == WORLD_NOW
    running = SampleResources(sample_resources.settings).clock
    assert WORLD_NOW <= running.now() < WORLD_NOW + timedelta(minutes=10)


def test_the_ledger_lies_under_a_local_root_with_its_tables(
    sample_resources: SampleResources,
) -> None:
    with sample_resources.ledger.engine.connect() as connection:
        assert connection.dialect.name == "sqlite"
    assert list((Path(sample_resources.settings.root)).glob("ledger.sqlite*"))


def test_a_remote_root_needs_a_place_for_the_sample_world() -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_SAMPLE_WORLD"):
        world_folder(Settings(root="s3://bucket/x", sample=True))


def test_inputs_are_placed_once(sample_resources: SampleResources) -> None:
    store, world = sample_resources.data_root.store, sample_resources.world.folder
    assert place_inputs(world, store) > 0
    assert place_inputs(world, store) == 0
    assert store.exists("feeds.opml")
    assert list(store.list("raw")) and list(store.list("snapshots"))


def test_inputs_that_are_taken_down_are_not_placed_again(sample_resources: SampleResources) -> None:
    store, world = sample_resources.data_root.store, sample_resources.world.folder
    place_inputs(world, store)
    ask(store, "domain", "almarsa.example", "northmoor-university.example")
    report = VerificationReport(Takedowns.read(store))
    verify_objects(store, report)
    gone = {one.place for one in report.findings}
    assert {place.partition("/")[0] for place in gone} == {"prod", "snapshots"}
    store.delete(gone)
    assert place_inputs(world, store, is_refused=input_filter(store)) == 0
    ask(store, "url", "https://elsewhere.example/")
    store.delete(["feeds.opml"])
    assert place_inputs(world, store, is_refused=input_filter(store)) == 1


def test_crawl_settings_become_options() -> None:
    given = CcnewsSettings(
        workers=3, memory_mb=512, max_warcs=7, hosts=("BBC.co.uk",), languages=("en",)
    )
    assert collect_options(given) == CollectOptions(
        workers=3,
        memory_mb=512,
        max_warcs=7,
        hosts=frozenset({"bbc.co.uk"}),
        languages=frozenset({"en"}),
    )
    # None: the run collects in its own process.
    assert collect_options(CcnewsSettings(workers=0)).workers == 0


def test_the_default_settings_are_the_default_options(local_store: ObjectStore) -> None:
    settings = Settings()
    assert collect_options(settings.ccnews) == CollectOptions(workers=2)
    assert build_options(settings.domain_store, local_store) == BuildOptions()
    web = Resources(settings).web
    agent = web.fetch_options.user_agent
    assert survey_options(settings.domain_metadata, web) == SurveyOptions(
        fetch=SurveyFetchOptions(user_agent=agent)
    )
    assert discovery_options(settings.rss) == DiscoveryOptions()
    assert poll_options(settings.rss) == PollOptions()
    assert work_options(settings.rss) == WorkOptions()
    assert resurvey_options(settings.domain_metadata) == ResurveyOptions()
    assert sync_options(settings) == SyncOptions()
    assert workbook_options(settings) == WorkbookOptions()
    assert alarm_options(settings) == AlarmOptions()
    assert analysis_options(settings) == AnalysisOptions()
    assert records_options(settings.source_records) == RecordsOptions()
    assert corpus_options(settings.corpus) == CorpusOptions(memory_bytes=1 << 30)
    assert web.fetch_options == FetchOptions()


def test_a_poll_interval_is_never_longest_below_shortest() -> None:
    given = RssSettings(min_interval_seconds=9_000, max_interval_seconds=60)
    assert poll_options(given).max_interval_seconds == 9_000


def test_settings_name_the_rule_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('language = "de"\n[sections]\ncall_words = 3\n')
    options = segment_options(SourceRecordsSettings(rules=str(file)))
    assert (options.language, options.sections.call_words) == ("de", 3)
    with pytest.raises(ConfigError, match="cannot read the rule file"):
        segment_options(SourceRecordsSettings(rules=str(tmp_path / "none.toml")))


def test_without_a_book_the_workbook_is_the_editors_view() -> None:
    assert sheets_access(SheetsSettings(service_account="key.json")) is None


def test_a_book_is_reached_by_its_id_or_by_its_title_at_an_endpoint() -> None:
    by_id = SheetsSettings(service_account="key.json", spreadsheet_id="b")
    assert sheets_access(by_id) == SheetAccess("key.json", spreadsheet_id="b")
    by_title = SheetsSettings(
        service_account="key.json", spreadsheet_title="T", endpoint="http://127.0.0.1:1"
    )
    found = sheets_access(by_title)
    assert found is not None and found.name == "T"


def test_a_book_without_an_account_names_the_missing_setting() -> None:
    with pytest.raises(ConfigError, match="GOOGLE_SERVICE_ACCOUNT_JSON"):
        sheets_access(SheetsSettings(spreadsheet_title="T"))


def test_full_texts_lie_under_the_root_or_where_the_setting_says(tmp_path: Path) -> None:
    root = DataRoot(Settings(root=str(tmp_path / "root")))
    assert open_full_texts(root).url == root.store.child("articles/full_text").url
    elsewhere = RssSettings(fulltext_dir=str(tmp_path / "texts"))
    set_apart = DataRoot(Settings(root=str(tmp_path / "root"), rss=elsewhere))
    assert open_full_texts(set_apart).local_folder == tmp_path / "texts"
