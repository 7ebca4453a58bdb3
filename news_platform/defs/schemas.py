"""The columns of assets that are no tables: JSON of outsiders, SQL rows, tabs of a workbook."""

from collections.abc import Mapping

import dagster as dg
from pydantic import BaseModel

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.domain_queue import DomainQueueMessage
from news_platform.datasets.research_datasets import ResearchRecord
from news_platform.rss.sheets.tabs import TABS


def model_schema(model: type[BaseModel]) -> dg.TableSchema:
    """Return the fields of a JSON object with what they mean."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(name, _type(field.annotation), description=field.description)
            for name, field in model.model_fields.items()
        ]
    )


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _tabs() -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(tab.name, "tab", description=", ".join(tab.columns)) for tab in TABS
        ]
    )


_SNAPSHOT = {
    "success": ("bool", "whether the crawler got the page; else `error` says why not"),
    "error": ("str", "why there is no page"),
    "data.rawHtml": ("str", "the page as it came: read first"),
    "data.html": ("str", "the page, perhaps stripped: read where rawHtml is missing"),
    "data.markdown": ("str", "the page as markdown: read where there is no HTML"),
    "data.metadata": ("object", "title, language, sourceURL, url, statusCode, contentType, error"),
}

SCHEMAS: Mapping[str, dg.TableSchema] = {
    "research_datasets": model_schema(ResearchRecord),
    "domain_queue": model_schema(DomainQueueMessage),
    "domain_metadata": model_schema(DomainMetadata),
    "article_sheets": _tabs(),
    "page_snapshots": dg.TableSchema(
        columns=[
            dg.TableColumn(name, kind, description=text) for name, (kind, text) in _SNAPSHOT.items()
        ]
    ),
}
