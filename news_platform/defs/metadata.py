"""What runs report to Dagster: counts, tables, plots and column lineage, without pages' content.

Dagster keeps events for good and takedowns do not reach them. So all metadata passes this module:
previews show the columns whose role is not an address, a title or a text; other texts lose the
addresses in them; and foreign text is escaped, because the UI renders Markdown.
"""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.registry import column_sources
from news_platform.errors import hide_addresses
from news_platform.text.normalize import scrub_text

# matplotlib is imported when a plot is drawn: it costs half a second that no sensor needs.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN_ROWS = 20
# What Markdown shows as it is: words and numbers. An underscore inside a word means nothing.
_PLAIN = re.compile(
    r"(?!.*(?:://|www\.))(?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ .,:;%+()/…-])*", re.IGNORECASE
)
_DPI = 80
_WIDTH_INCHES = 7.0
_BLUE = "#4f43dd"
# From closed to open; the colours differ for every kind of colour vision, and in print.
_POLICIES = {
    "disallow_all": "#b2182b",
    "partial": "#f4a582",
    "allow": "#4393c3",
    "unspecified": "#d9d9d9",
}
_CHANGES = {"blocked": "#b2182b", "changed": "#f4a582", "opened": "#4393c3"}
_SERIES = ("#4f43dd", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1")
_SHOWN_BOTS = 15


def column_schema(dataset: Dataset) -> dg.TableSchema:
    """Return the columns of a dataset with their descriptions, including those in the path."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(column.name, str(column.dtype), description=column.description)
            for column in dataset.all_columns
        ]
    )


def run_metadata(dataset: Dataset, values: Mapping[str, object]) -> dict[str, Any]:
    """Return what a run reports about a dataset: these values, and where its columns come from."""
    shown = {
        name: hide_addresses(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
    return {**shown, **column_lineage(dataset)}


def preview(
    dataset: Dataset, rows: pl.DataFrame, *, columns: Iterable[str] = ()
) -> dg.MarkdownMetadataValue:
    """Return the first rows with the columns that may be shown outside the root.

    `columns` chooses some of them; columns that the dataset does not have are computed ones.
    """
    hidden = {column.name for column in dataset.all_columns if not column.is_shown}
    names = [name for name in columns or rows.columns if name in rows.columns]
    shown = [name for name in names if name not in hidden]
    return markdown_table(shown, rows.select(shown).head(_SHOWN_ROWS).iter_rows())


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, longest: int = 80
) -> dg.MarkdownMetadataValue:
    """Return rows as a Markdown table; each cell is one line of at most `longest` characters."""
    lines = [f"| {' | '.join(_cell(name, longest) for name in columns)} |"]
    lines += ["|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(value, longest) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object, longest: int) -> str:
    """Return a value as Markdown that shows it and does nothing.

    In a code span there are no links, images or tags. A backtick would end it and a bar the cell,
    and parsers disagree about backslashes before them, so each has a stand-in.
    """
    text = scrub_text(hide_addresses(" ".join(str("" if value is None else value).split())))
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    if _PLAIN.fullmatch(cut):
        return cut
    return f"`{cut.replace('`', 'ˋ').replace('|', '¦')}`"


def column_lineage(dataset: Dataset) -> Mapping[str, dg.MetadataValue]:
    """Return the lineage as Dagster's own metadata and as a Markdown table.

    Dagster's open-source UI stores column lineage but does not show it.
    """
    sources = column_sources(dataset)
    if not sources:
        return {}
    deps = {column: [_dep(source) for source in given] for column, given in sources.items()}
    rows = [(column, ", ".join(given)) for column, given in sources.items()]
    return {
        "dagster/column_lineage": dg.MetadataValue.column_lineage(
            dg.TableColumnLineage(deps_by_column=deps)
        ),
        "column_sources": markdown_table(("column", "sources"), rows),
    }


def _dep(source: str) -> dg.TableColumnDep:
    asset, _, column = source.partition(".")
    return dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=column)


def hours_plot(articles_per_hour: Mapping[str, int]) -> dg.MarkdownMetadataValue:
    """Plot the number of articles stored per hour."""
    if not any(articles_per_hour.values()):
        return _nothing("articles per hour")
    figure, axes = _canvas(2.0)
    labels = [hour[-5:] for hour in articles_per_hour]
    axes.bar(range(len(labels)), list(articles_per_hour.values()), color=_BLUE)
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
    axes.set_ylabel("articles")
    return _picture(figure, "articles per hour")


def languages_plot(days: Mapping[date, Mapping[str, int]]) -> dg.MarkdownMetadataValue:
    """Plot the pages of each day by language: the six most frequent and all others."""
    totals: dict[str, int] = {}
    for counts in days.values():
        for language, pages in counts.items():
            totals[language] = totals.get(language, 0) + pages
    if not totals:
        return _nothing("languages per day")
    named = sorted(totals, key=lambda language: (-totals[language], language))[: len(_SERIES) - 1]
    rows = {language: [counts.get(language, 0) for counts in days.values()] for language in named}
    rest = [
        sum(counts.values()) - sum(row[at] for row in rows.values())
        for at, counts in enumerate(days.values())
    ]
    figure, axes = _canvas(2.6)
    _stack(axes, [day.isoformat() for day in days], {**rows, "other": rest})
    axes.set_ylabel("pages")
    return _picture(figure, "languages per day")


def growth_plot(first_seen: Sequence[date], records: Mapping[str, int]) -> dg.MarkdownMetadataValue:
    """Plot the records of the newest batches, and the number of known domains by day."""
    if not records and not first_seen:
        return _nothing("growth of the store")
    figure = _figure(2.4)
    left, right = figure.subplots(1, 2)
    left.bar(list(records), list(records.values()), color=_BLUE)
    left.set_ylabel("records")
    found = Counter(first_seen)
    days = sorted(found)
    known = list(accumulate(found[day] for day in days))
    right.step([day.isoformat() for day in days], known, where="post", color=_BLUE, marker="o")
    right.set_ylabel("domains known")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        _tidy(axes)
    return _picture(figure, "growth of the store")


def policy_plot(counts: pl.DataFrame) -> dg.MarkdownMetadataValue:
    """Plot the policies of the domains for the most blocked crawlers."""
    shown = counts.head(_SHOWN_BOTS).reverse()
    widths = {policy: shown[policy].to_list() for policy in _POLICIES}
    return _bots_plot(shown["bot"].to_list(), widths, _POLICIES, "AI policies")


def changes_plot(changes: pl.DataFrame) -> dg.MarkdownMetadataValue:
    """Plot, per AI crawler, how many domains blocked it, opened to it or changed otherwise."""
    bots = changes["bot"].value_counts(sort=True)["bot"].head(_SHOWN_BOTS).to_list()[::-1]
    found = Counter(changes.select("change", "bot").iter_rows())
    widths = {one: [found[one, bot] for bot in bots] for one in _CHANGES}
    return _bots_plot(bots, widths, _CHANGES, "AI policy changes")


def _bots_plot(
    bots: Sequence[str],
    widths: Mapping[str, Sequence[int]],
    colours: Mapping[str, str],
    what: str,
) -> dg.MarkdownMetadataValue:
    """Plot numbers of domains per crawler as bars, one stacked upon the other."""
    if not bots:
        return _nothing(what)
    figure, axes = _canvas(0.8 + 0.28 * len(bots))
    left = [0] * len(bots)
    for name, row in widths.items():
        axes.barh(list(bots), list(row), left=left, color=colours[name], label=name)
        left = [start + width for start, width in zip(left, row, strict=True)]
    axes.set_xlabel("domains")
    columns = len(widths)
    axes.legend(
        ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8
    )
    return _picture(figure, what)


def trend_plot(
    days: Sequence[str], series: Mapping[str, Sequence[float]], what: str
) -> dg.MarkdownMetadataValue:
    """Plot shares over time, one line each."""
    if not days or not series:
        return _nothing(what)
    figure, axes = _canvas(2.6)
    for (name, shares), colour in zip(series.items(), _SERIES, strict=False):
        axes.plot(
            list(days), [100 * share for share in shares], color=colour, marker=".", label=name
        )
    axes.set_ylabel("% of domains")
    axes.set_ylim(bottom=0)
    # More dates than these would overlap.
    step = max(1, len(days) // 12)
    axes.set_xticks(range(0, len(days), step), list(days)[::step], rotation=90, fontsize=7)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    return _picture(figure, what)


def _nothing(what: str) -> dg.MarkdownMetadataValue:
    """Return what stands in the place of a plot that would be empty."""
    return dg.MetadataValue.md(f"{what}: nothing to show yet")


def _figure(height_inches: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")


def _canvas(height_inches: float) -> "tuple[Figure, Axes]":
    figure = _figure(height_inches)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _stack(axes: "Axes", labels: Sequence[str], rows: Mapping[str, Sequence[int]]) -> None:
    bottom = [0] * len(labels)
    for (name, row), colour in zip(rows.items(), _SERIES, strict=False):
        axes.bar(labels, row, bottom=bottom, color=colour, label=name)
        bottom = [start + height for start, height in zip(bottom, row, strict=True)]
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)


def _tidy(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", rotation=90, labelsize=7)


def _picture(figure: "Figure", name: str) -> dg.MarkdownMetadataValue:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=_DPI, metadata={"Software": None})
    body = base64.b64encode(file.getvalue()).decode("ascii")
    return dg.MetadataValue.md(f"![{name}](data:image/png;base64,{body})")
