"""A walk over the whole graph: nothing in it leaves a reader or an operator alone."""

import re
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.asset_graph_view.asset_graph_view import AssetGraphView
from dagster._core.definitions.events import AssetKeyPartitionKey

from news_platform.datasets.dataset import Sensitivity
from news_platform.datasets.registry import DATASETS, column_sources
from news_platform.definitions import build_definitions
from news_platform.defs.graph import VIEWS
from news_platform.defs.metadata import column_lineage
from news_platform.defs.runs import JOB_ASSETS
from news_platform.resources import Resources
from news_platform.settings import Settings

PROJECT = Path(__file__).parent.parent.parent
DEFS = build_definitions(Resources(Settings(root="no-such-root", sample=False)))
GRAPH = DEFS.resolve_asset_graph()
SPECS = {spec.key.to_user_string(): spec for spec in DEFS.resolve_all_asset_specs()}
CHECKS = {
    spec.key.name: spec
    for asset in (*(DEFS.assets or ()), *(DEFS.asset_checks or ()))
    if isinstance(asset, dg.AssetsDefinition)
    for spec in asset.check_specs
}
EXTERNAL = {"warc_paths", "research_datasets", "page_snapshots"}
JOINED = {name for name, dataset in DATASETS.items() if dataset.place.engine == "view"}
CROSSING = {
    ("raw_news", "feed_candidates"),
    ("feed_candidates", "feeds"),
    ("raw_news", "domain_buckets"),
    ("domain_catalog", "domain_metadata"),
    ("domain_metadata", "articles"),
    ("crawl_articles", "near_duplicates"),
    ("feed_articles", "near_duplicates"),
    ("near_duplicates", "stories"),
}


def _columns(asset: str) -> dict[str, dg.TableColumn]:
    schema = SPECS[asset].metadata["dagster/column_schema"]
    assert isinstance(schema, dg.TableSchema)
    return {column.name: column for column in schema.columns}


def test_the_rooms_are_joined_by_edges_that_cross_them() -> None:
    edges = {
        (dep.asset_key.to_user_string(), name) for name, spec in SPECS.items() for dep in spec.deps
    }
    assert edges >= CROSSING


@pytest.mark.parametrize("name", sorted(SPECS))
def test_an_asset_is_described_owned_tagged_documented_and_watched(name: str) -> None:
    spec = SPECS[name]
    is_view = name in JOINED
    place = "a view of `[^`]+`, and nothing of it is stored" if is_view else "stored at `[^`]+`"
    assert re.search(rf"A row is .+\. It is {place}\.$", spec.description or "")
    assert spec.is_virtual == is_view
    assert len(spec.description or "") >= 120, "one paragraph, not a label"
    assert list(spec.owners) == [f"team:{spec.group_name}"]
    assert spec.kinds
    assert spec.tags["sensitivity"] in set(Sensitivity)
    assert spec.tags["cost"] in ("low", "medium", "high")
    assert (spec.code_version is None) == (name in EXTERNAL | JOINED)
    columns = _columns(name).values()
    assert columns and all(column.description for column in columns)
    docs = spec.metadata["docs"]
    assert isinstance(docs, dg.PathMetadataValue) and (PROJECT / str(docs.value)).exists()
    # Freshness is watched, or the asset says why not.
    reason = spec.metadata.get("no_freshness_policy")
    assert (spec.freshness_policy is None) == bool(reason)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_check_says_what_to_do_when_it_is_red(name: str) -> None:
    claim, _, advice = (CHECKS[name].description or "").partition("If red: ")
    assert claim.strip()
    assert len(advice) > 30, "what to look at, and what to do"


@pytest.mark.parametrize(
    "name", sorted(name for name in SPECS.keys() - JOINED if column_sources(DATASETS[name]))
)
def test_column_lineage_joins_columns_that_exist_along_edges_that_exist(name: str) -> None:
    ancestors = {key.to_user_string() for key in GRAPH.get_ancestor_asset_keys(dg.AssetKey(name))}
    lineage = column_lineage(DATASETS[name])["dagster/column_lineage"].value
    assert isinstance(lineage, dg.TableColumnLineage)
    for column, sources in lineage.deps_by_column.items():
        assert column in _columns(name)
        for source in sources:
            asset = source.asset_key.to_user_string()
            assert asset in ancestors
            assert source.column_name in _columns(asset), source


@pytest.mark.filterwarnings("ignore:Parameter `include_sources`")  # Dagster's own parser sets it
def test_a_view_selects_something_but_not_everything() -> None:
    for what, text in VIEWS.items():
        selected = dg.AssetSelection.from_string(text, include_sources=True).resolve(GRAPH)
        assert 1 < len(selected) < len(SPECS) or what == "what costs hours or gigabytes", what


@pytest.mark.parametrize("name", JOB_ASSETS)
def test_a_job_can_be_backfilled_because_its_assets_share_their_partitions(name: str) -> None:
    job = DEFS.resolve_job_def(name)
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == set(
        JOB_ASSETS[name]
    )
    assert len({SPECS[asset].partitions_def for asset in JOB_ASSETS[name]}) == 1


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_first_and_the_newest_partition_can_be_backfilled(name: str) -> None:
    partitions = SPECS[name].partitions_def
    if partitions is None or isinstance(partitions, dg.DynamicPartitionsDefinition):
        return
    keys = {partitions.get_first_partition_key(), partitions.get_last_partition_key()}
    with dg.DagsterInstance.ephemeral() as instance:
        view = AssetGraphView.for_test(DEFS, instance)
        key = SPECS[name].key
        subset = view.get_asset_subset_from_asset_partitions(
            key, {AssetKeyPartitionKey(key, one) for one in keys if one is not None}
        )
        for parent in GRAPH.get(key).parent_keys:
            _, missing = view.compute_parent_subset_and_required_but_nonexistent_subset(
                parent, subset
            )
            assert missing.is_empty, f"{parent} lacks {missing}"


def test_every_asset_that_we_build_belongs_to_exactly_one_job() -> None:
    built = [asset for assets in JOB_ASSETS.values() for asset in assets]
    assert sorted(built) == sorted(SPECS.keys() - EXTERNAL - JOINED)


def test_every_asset_is_declared_and_every_declaration_is_an_asset() -> None:
    declared = {name for name, dataset in DATASETS.items() if dataset.is_asset}
    assert declared | JOINED == SPECS.keys()


def test_what_is_built_from_other_columns_says_from_which() -> None:
    """Outside systems describe no columns, and the parents of some only choose what is built."""
    no_columns = {"raw_news", "takedowns", *EXTERNAL}
    for name in SPECS.keys() - no_columns:
        assert column_sources(DATASETS[name]), name
    sources = column_sources(DATASETS["search_index"])
    assert sources.keys() == DATASETS["search_index"].full_schema.keys()
