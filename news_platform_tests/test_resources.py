"""From settings to opened resources."""

from pathlib import Path

import pytest

from news_platform.errors import ConfigError
from news_platform.resources import (
    DataRoot,
    Resources,
    open_full_texts,
    open_resources,
    segment_options,
    sheets_access,
)
from news_platform.sample.world import SampleResources, place_inputs, world_folder
from news_platform.setting_sections.features import (
    RssSettings,
    SheetsSettings,
    SourceRecordsSettings,
)
from news_platform.settings import Settings
from news_platform.storage.commit.root import read_world
from news_platform.takedowns.build_filters import input_filter
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform_tests.takedowns.asked import ask


@pytest.fixture
def sample_resources(tmp_path: Path, sample_world: Path) -> SampleResources:
    settings = Settings(root=str(tmp_path / "root"), sample_world=str(sample_world))
    return SampleResources(settings, frozen_clock=True)


def test_opening_nothing_touches_nothing(tmp_path: Path) -> None:
    open_resources(Settings(root=str(tmp_path / "root")))
    assert not (tmp_path / "root").exists()
    remote = Settings(root="s3://bucket/root")
    assert type(open_resources(remote, may_connect=False)) is Resources


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


def test_a_remote_root_needs_a_place_for_the_sample_world() -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_SAMPLE_WORLD"):
        world_folder(Settings(root="s3://bucket/x", sample=True))


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


def test_settings_name_the_rule_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('language = "de"\n[sections]\ncall_words = 3\n')
    options = segment_options(SourceRecordsSettings(rules=str(file)))
    assert (options.language, options.sections.call_words) == ("de", 3)
    with pytest.raises(ConfigError, match="cannot read the rule file"):
        segment_options(SourceRecordsSettings(rules=str(tmp_path / "none.toml")))


def test_a_book_without_an_account_names_the_missing_setting() -> None:
    with pytest.raises(ConfigError, match="GOOGLE_SERVICE_ACCOUNT_JSON"):
        sheets_access(SheetsSettings(spreadsheet_title="T"))


def test_full_texts_lie_under_the_root_or_where_the_setting_says(tmp_path: Path) -> None:
    root = DataRoot(Settings(root=str(tmp_path / "root")))
    assert open_full_texts(root).url == root.store.child("articles/full_text").url
    elsewhere = RssSettings(fulltext_dir=str(tmp_path / "texts"))
    set_apart = DataRoot(Settings(root=str(tmp_path / "root"), rss=elsewhere))
    assert open_full_texts(set_apart).local_folder == tmp_path / "texts"
