"""Analyse stored articles whose text is new: by a model if one is set, else by extraction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.errors import FetchError, InputError
from news_platform.rss.analyses.extractive import AnalysedText, Analysis, analyse
from news_platform.rss.analyses.model import ModelAccess, ask_model
from news_platform.rss.exports.selection import IS_ARTICLE
from news_platform.rss.ledger.tables import ANALYSES, RAW
from news_platform.rss.ledger.transactions import (
    note_metrics,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.storage.sql.engine import read_transaction

STAGE = "analyses"
# The Config key of the change up to which all articles are analysed.
_CURSOR = "analyses_seq"
_WRITE_AT_ONCE = 200
_COLUMNS: tuple[sa.Column[Any], ...] = (
    RAW.c.row_id,
    RAW.c.changed_seq,
    RAW.c.text_hash,
    RAW.c.title,
    RAW.c.clean_text,
    RAW.c.language,
    RAW.c.section,
    RAW.c.tags,
    RAW.c.category_guess,
)


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """How many articles one run analyses, and the model to ask; None: none is asked."""

    # One run stays within minutes; the next takes the rest.
    per_run: int = 5_000
    model: ModelAccess | None = None
    # A model may take seconds per article, and the sheet waits for its run.
    model_seconds: float = 120.0
    # After so many failures in a row the server is down, and the articles wait for the next run.
    failures: int = 3


@dataclass(frozen=True, slots=True)
class AnalysisReport:
    """How many articles were analysed, and how often the model did not help."""

    analysed: int = 0
    model_failures: int = 0
    left: bool = False


def analyse_articles(
    engine: sa.Engine, *, options: AnalysisOptions, clock: Callable[[], datetime]
) -> AnalysisReport:
    """Analyse the articles that changed their text since the last run, oldest change first."""
    since = int(read_config(engine, _CURSOR) or 0)
    rows = _unanalysed(engine, since, limit=options.per_run)
    analyst = _Analyst(options, until=clock() + timedelta(seconds=options.model_seconds))
    done = 0
    for start in range(0, len(rows), _WRITE_AT_ONCE):
        batch = rows[start : start + _WRITE_AT_ONCE]
        analyses = []
        for row in batch:
            if (analysis := analyst.analyse(row, now=clock())) is None:
                break
            analyses.append((row, analysis))
        _write(engine, analyses, now=clock())
        done += len(analyses)
        if len(analyses) < len(batch):
            break
    is_left = done < len(rows) or len(rows) == options.per_run
    if rows:
        _finish(engine, rows, done, analyst, now=clock())
    return AnalysisReport(done, analyst.failed, is_left)


def has_unanalysed(engine: sa.Engine) -> bool:
    """Return whether an article waits for its analysis."""
    return bool(_unanalysed(engine, int(read_config(engine, _CURSOR) or 0), limit=1))


class _Analyst:
    """Analyses article by article, and counts how often the model failed."""

    def __init__(self, options: AnalysisOptions, *, until: datetime) -> None:
        self.failed = 0
        self._in_a_row = 0
        self._options, self._until = options, until

    def analyse(self, row: sa.Row[Any], *, now: datetime) -> Analysis | None:
        """Return the analysis of a row; None if the model has no time, or does not answer."""
        article = AnalysedText(
            row.title, row.clean_text, row.language, row.section, row.tags, row.category_guess
        )
        model = self._options.model
        if model is None:
            return analyse(article)
        while now < self._until and self._in_a_row < self._options.failures:
            try:
                analysis = ask_model(model, article)
            except InputError:
                # The server answers, but not about this article.
                self.failed, self._in_a_row = self.failed + 1, 0
                return analyse(article)
            except FetchError:
                self.failed, self._in_a_row = self.failed + 1, self._in_a_row + 1
            else:
                self._in_a_row = 0
                return analysis
        return None


def _unanalysed(engine: sa.Engine, since: int, *, limit: int) -> Sequence[sa.Row[Any]]:
    is_new = sa.or_(ANALYSES.c.row_id.is_(None), ANALYSES.c.text_hash != RAW.c.text_hash)
    chosen = (
        sa.select(*_COLUMNS)
        .select_from(RAW.outerjoin(ANALYSES, ANALYSES.c.row_id == RAW.c.row_id))
        .where(*IS_ARTICLE, RAW.c.changed_seq > since, RAW.c.clean_text != "", is_new)
        .order_by(RAW.c.changed_seq, RAW.c.row_id)
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        return connection.execute(chosen).all()


def _write(
    engine: sa.Engine, analyses: Sequence[tuple[sa.Row[Any], Analysis]], *, now: datetime
) -> None:
    if not analyses:
        return
    with write_transaction(engine) as change:
        ids = [row.row_id for row, _ in analyses]
        change.connection.execute(sa.delete(ANALYSES).where(ANALYSES.c.row_id.in_(ids)))
        rows = [
            {
                "row_id": row.row_id,
                "summary": one.summary,
                "keywords": one.keywords,
                "sentiment": one.sentiment,
                "topics": one.topics,
                "model": one.model,
                "analysed_at": now,
                "text_hash": row.text_hash,
                "changed_seq": change.seq,
            }
            for row, one in analyses
        ]
        change.connection.execute(sa.insert(ANALYSES), rows)


def _finish(
    engine: sa.Engine,
    rows: Sequence[sa.Row[Any]],
    done: int,
    analyst: _Analyst,
    *,
    now: datetime,
) -> None:
    """Write the counters, and the cursor before the first change that is not complete."""
    # The rest of the last change may be beyond the limit, so it is looked at again.
    reached = rows[min(done, len(rows) - 1)].changed_seq - 1
    metrics = {"analysed": done, "model_failures": analyst.failed}
    with write_transaction(engine) as change:
        write_config(change, _CURSOR, str(reached), now=now)
        note_metrics(change, STAGE, metrics, now=now)
