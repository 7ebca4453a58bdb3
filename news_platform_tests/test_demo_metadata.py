"""What every asset tells of its last run, over a finished demo: nothing is left for guessing."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import dagster as dg
import pytest

from news_platform.api import open_root
from news_platform.datasets.registry import DATASETS, column_sources
from news_platform.definitions import build_definitions
from news_platform.defs.graph import BUILD_ORDER
from news_platform.sample.world import SampleResources
from news_platform.settings import Settings
from news_platform_tests.servers.demo import Demo

# Nothing is taken down in the sample world, so nothing is there to be served.
NOT_BUILT = {"takedowns"}
BUILT = sorted({*(step.asset for step in BUILD_ORDER), "captures", "feed_candidates"} - NOT_BUILT)
PLOTS = {
    "raw_news": "languages_per_day",
    "articles": "articles_per_hour",
    "domain_surveys": "ai_policies_plot",
    "ai_policy_changes": "changes_plot",
    "domain_catalog": "growth",
}
IN_THE_LEDGER = {"domain_queue", "feeds", "pending_articles"}
DEFS = build_definitions(SampleResources(Settings(root="no-such-root", sample=True)))

Metadata = Mapping[str, dg.MetadataValue]


@pytest.fixture(scope="module")
def instance(finished_demo: Demo) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(finished_demo.home)) as instance:
        yield instance


def _metadata(instance: dg.DagsterInstance, asset: str) -> Metadata:
    event = instance.get_latest_materialization_event(dg.AssetKey(asset))
    assert event is not None and event.asset_materialization is not None, f"{asset} was not built"
    return event.asset_materialization.metadata


@pytest.mark.parametrize("asset", BUILT)
def test_an_asset_counts_its_rows_says_where_they_lie_and_shows_some(
    instance: dg.DagsterInstance, asset: str
) -> None:
    metadata = _metadata(instance, asset)
    partitions = DEFS.resolve_asset_graph().get(dg.AssetKey(asset)).partitions_def
    counted = "dagster/row_count" if partitions is None else "dagster/partition_row_count"
    assert isinstance(metadata[counted].value, int)
    assert "dagster/uri" in metadata or asset in IN_THE_LEDGER
    shown = metadata.items()
    tables = [value for name, value in shown if name != "column_sources" and _is_table(value)]
    assert tables
    assert all(len(str(table.value)) < 20_000 for table in tables)


def test_an_asset_shows_its_picture(instance: dg.DagsterInstance) -> None:
    for asset, name in PLOTS.items():
        records = instance.fetch_materializations(dg.AssetKey(asset), limit=10).records
        made = [record.asset_materialization for record in records]
        shown = [str(one.metadata[name].value) for one in made if one]
        # A day without changes says that there is nothing to show.
        pictures = [text for text in shown if text.startswith("![")]
        assert pictures and all("](data:image/png;base64," in text for text in pictures), asset


def test_an_asset_tells_which_column_comes_from_which(instance: dg.DagsterInstance) -> None:
    for asset in (name for name in BUILT if column_sources(DATASETS[name])):
        metadata = _metadata(instance, asset)
        lineage = metadata["dagster/column_lineage"].value
        assert isinstance(lineage, dg.TableColumnLineage)
        assert lineage.deps_by_column.keys() == column_sources(DATASETS[asset]).keys()
        assert _is_table(metadata["column_sources"]), asset


def test_every_check_ran_and_all_but_one_passed(instance: dg.DagsterInstance) -> None:
    keys = [
        key
        for key in sorted(DEFS.resolve_asset_graph().asset_check_keys)
        if key.asset_key.to_user_string() not in NOT_BUILT
    ]
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    not_green = [key for key in keys if str(latest[key].status.value) != "SUCCEEDED"]
    # Most pages of one institution of the sample cannot be read.
    assert [key.name for key in not_green] == ["few_pages_fail"]


def _is_table(value: dg.MetadataValue) -> bool:
    return isinstance(value, dg.MarkdownMetadataValue) and str(value.value).startswith("| ")


def test_no_address_of_a_page_is_in_the_home_of_dagster(finished_demo: Demo) -> None:
    news = open_root(finished_demo.root)
    columns = {"raw_news": "uri", "all_articles": "url", "pending_articles": "article_url_canon"}
    addresses = {
        address.encode()
        for dataset, column in columns.items()
        for address in news[dataset].select(column).unique().collect()[column]
    }
    # A site's home page is its domain, which may be shown.
    pages = {address for address in addresses if urlsplit(address).path.strip(b"/")}
    assert len(pages) > 100
    files = [path for path in finished_demo.home.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) > 1 << 20
    found = {
        (str(path.relative_to(finished_demo.home)), page)
        for path in files
        for body in [path.read_bytes()]
        for page in pages
        if page in body
    }
    assert found == set()
