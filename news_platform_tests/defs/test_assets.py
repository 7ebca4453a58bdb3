"""Assets and what their runs report: derived from declarations, without pages' content."""

from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from markdown_it import MarkdownIt

import news_platform
from news_platform.datasets.corpus import FEED_ARTICLES
from news_platform.datasets.near_duplicates import CLUSTER_DAYS, NEAR_DUPLICATES
from news_platform.datasets.registry import DATASETS
from news_platform.definitions import defs
from news_platform.defs.assets import Metadata, dataset_asset, rebuild_rule
from news_platform.defs.metadata import markdown_table, preview
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import over
from news_platform_tests.server.hostile import MARKDOWN


def _mapping(dataset: str, parent: str) -> dg.PartitionMapping | None:
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    deps = {dep.asset_key.to_user_string(): dep for dep in specs[dataset].deps}
    return deps[parent].partition_mapping


def test_partitions_of_parents_map_as_declared() -> None:
    window = _mapping("near_duplicates", "crawl_articles")
    assert isinstance(window, dg.TimeWindowPartitionMapping)
    assert window.start_offset == 1 - CLUSTER_DAYS
    assert isinstance(_mapping("training_export", "feed_articles"), dg.TimeWindowPartitionMapping)
    assert isinstance(_mapping("domain_store", "domain_buckets"), dg.AllPartitionMapping)
    assert _mapping("feed_articles", "articles") is None


def test_a_rule_waits_for_the_partitions_that_an_own_one_is_built_from() -> None:
    (crawl, _feed) = rebuild_rule(NEAR_DUPLICATES).parents
    assert crawl.partitions is not None
    assert crawl.partitions.is_input({"2025-11-01"})("2025-11-03")
    assert not crawl.partitions.is_input({"2025-11-04"})("2025-11-03")
    # A parent without partitions is taken as it is.
    (articles,) = rebuild_rule(FEED_ARTICLES).parents
    assert articles.partitions is None


def test_automation_removes_no_dataset_whose_inputs_are_gone(local_store: ObjectStore) -> None:
    dataset = DATASETS["search_index"]
    for day in range(1, 9):
        inputs = f"{day:016x}"
        write_marker(local_store, dataset.name, f"2025-11-{day:02}", inputs=inputs, report={})
    with pytest.raises(StorageError, match=r"refused to remove 8 of 8 units .*allow_removal"):
        rebuild_rule(dataset).stale(over(local_store))


def test_a_preview_leaves_out_addresses_titles_and_texts() -> None:
    rows = pl.DataFrame(
        {
            "url": ["https://a.example/1"],
            "title": ["A headline"],
            "text": ["Body"],
            "domain": ["a.example"],
            "language": ["en"],
            "articles": [3],
        }
    )
    shown = preview(FEED_ARTICLES, rows).value
    assert shown == "| domain | language | articles |\n|---|---|---|\n| a.example | en | 3 |"


def _pieces(markdown: object) -> list[list[set[str]]]:
    """Return, per row and cell of a table, the kinds of what a parser of Markdown finds there."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(str(markdown))
    rows: list[list[set[str]]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append({child.type for child in token.children or ()})
    return rows


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_foreign_text_is_only_text_in_the_previews_of_every_dataset(name: str) -> None:
    dataset = DATASETS[name]
    texts = [one.name for one in dataset.all_columns if one.dtype == pl.String() and one.is_shown]
    rows = pl.DataFrame({column: MARKDOWN for column in texts or ["computed"]})
    shown = rows.columns
    for start in range(0, len(MARKDOWN), 20):
        found = _pieces(preview(dataset, rows[start:]).value)
        assert len(found) == 21 and {len(row) for row in found} == {len(shown)}
        assert {kind for row in found for cell in row for kind in cell} <= {"text", "code_inline"}


def test_foreign_text_loses_addresses_and_keeps_its_sense() -> None:
    foreign = "<b> a|b https://a.example/p?q=1"
    table = str(markdown_table([foreign], [(foreign,), ("few_words",), ("e.g. 7 %",)]).value)
    head, _, *cells = table.splitlines()
    assert head == cells[0] == "| `<b> a¦b https://a.example/…` |"
    assert cells[1:] == ["| few_words |", "| e.g. 7 % |"]


def test_markdown_is_made_in_one_place() -> None:
    package = Path(news_platform.__file__).parent
    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "MetadataValue.md(" in path.read_text(encoding="utf-8")
    ]
    assert found == ["defs/metadata.py"]


def test_the_errors_of_an_asset_do_not_name_pages() -> None:
    @dataset_asset(DATASETS["feeds"])
    def build() -> Metadata:
        try:
            raise ValueError("https://a.example/page is odd")
        except ValueError as error:
            raise InputError("cannot read 'https://a.example/page'; try again") from error

    with pytest.raises(
        InputError, match=r"cannot read .https://a\.example/….; try again"
    ) as caught:
        dg.materialize([build])
    assert str(caught.value.__cause__) == "https://a.example/… is odd"
