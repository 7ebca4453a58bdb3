"""The article_sheets dataset: the editors' view of the ledger, as a Google Sheet or a workbook."""

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
)

ARTICLE_SHEETS = Dataset(
    name="article_sheets",
    group="rss",
    description="Feeds, articles, index, diagnostics and config as tabs for editors, in the "
    "Google Sheet that the settings name, or in an .xlsx file under the root.",
    row="one feed, article, statistic or setting, depending on the tab",
    place=Place("files", "article_sheets/{file}"),
    columns=(
        Column("Feeds", Role.links, "tab with one row per feed"),
        Column("Raw", Role.text, "tab with one row per article"),
        Column("ArticlesIndex", Role.links, "tab with one row per address"),
        Column("Diagnostics", Role.fact, "tab with one row per statistic"),
        Column("Config", Role.fact, "tab with one row per setting"),
        Column("Analyses", Role.text, "tab with one row per analysed article"),
    ),
    parents=(ParentDataset("articles", EVERY), ParentDataset("feeds", EVERY)),
    version=versions.LEDGER,
    kinds=frozenset({"googlesheets"}),
    sensitivity=Sensitivity.texts,
    removal="rebuild",
    page="sheets.md",
    freshness=Freshness(13, 25),
)
