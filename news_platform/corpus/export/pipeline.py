"""Export a selection of the corpus: choose, read, count tokens, write shards, manifest and card.

`export_corpus` fills an empty local folder; `publish.py` puts it in its place.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from news_platform.corpus.export.card import ExportManifest, card_text
from news_platform.corpus.export.filtering import (
    NARROW,
    ArticleChoice,
    Chosen,
    Covers,
    ExportSelection,
    FileFormat,
    StatedUsage,
    nothing_stated,
    require_languages,
    short_hash,
)
from news_platform.corpus.export.papers import (
    CROISSANT,
    SUMMARY,
    croissant_bytes,
    provenance_lines,
    summary_text,
)
from news_platform.corpus.export.receipts import (
    EarlierExports,
    Signer,
    copy_script,
    write_manifest,
    write_statements,
)
from news_platform.corpus.export.shards import SHARD_BYTES, write_shards
from news_platform.corpus.pipeline import crawl_dataset, feed_dataset
from news_platform.corpus.sorted_rows import KeyOrder, iter_runs, merge_runs
from news_platform.datasets.corpus import ALL_ARTICLES, SORT_COLUMNS, TRAINING_EXPORT
from news_platform.errors import InputError
from news_platform.storage.delta import DeltaFile
from news_platform.storage.delta_files import arrow_schema
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import iter_frames

if TYPE_CHECKING:
    import pyarrow as pa


from importlib import import_module
from importlib.util import find_spec

CARD = "README.md"
IN_EARLIER_EXPORT = "in_earlier_export"
_RUN_BYTES = 64 << 20
_ORDER = ("source", *SORT_COLUMNS)
_ASK = "Ask whoever published this dataset, and name the addresses; see the column `url`."


class EmptySelection(InputError):
    """No article of the chosen days may be exported."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How an export is written; `clusters_of` has the clusters of similar texts by days.

    `count_tokens` is None without a tokenizer. `removal` is the card's text about removals.
    """

    file_format: FileFormat = "parquet"
    stated_usage: StatedUsage = nothing_stated
    covers: Covers = lambda _: False
    clusters_of: Callable[[Sequence[str]], pl.DataFrame | None] = lambda _: None
    count_tokens: Callable[[str], int] | None = None
    shard_bytes: int = SHARD_BYTES
    scratch: str | None = None
    removal: str = _ASK
    # The sketch of a text, by which later exports can leave it out.
    sketch: Callable[[str], str] | None = None
    earlier: EarlierExports | None = None
    sign: Signer | None = None
    program: str = ""
    takedowns: str = ""
    lists: Sequence[tuple[str, int]] = ()
    # An unknown language is a typing error of a person, but not of a schedule.
    require_languages: bool = True


@dataclass(slots=True)
class _Totals:
    languages: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    sources: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    repeated: int = 0

    def counted(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for frame in frames:
            for language, words in frame.select("language", "word_count").iter_rows():
                found = self.languages[language or ""]
                found[0] += 1
                found[1] += words or 0
            self.sources.update(frame["source"])
            sizes = frame.group_by("domain").agg(pl.col("text").str.len_bytes().sum())
            self.domains.update(dict(sizes.iter_rows()))
            yield frame


def export_corpus(
    store: ObjectStore, folder: Path, selection: ExportSelection, options: ExportOptions
) -> ExportManifest:
    """Write an export to an empty folder; raise EmptySelection if nothing is left."""
    files = _files(store, selection)
    chosen, considered, sorted_days = _choose(store, files, selection, options)
    if not chosen.rows.height:
        why = ", ".join(f"{name} {count}" for name, count in chosen.dropped.items()) or "none found"
        message = f"the selection is empty: of {considered} articles, dropped: {why}"
        raise EmptySelection(message, thing="selection")
    totals = _Totals()
    shards = write_shards(
        totals.counted(_new_rows(store, files, chosen, sorted_days, selection, options, totals)),
        folder,
        file_format=options.file_format,
        schema=_schema(options),
        shard_bytes=options.shard_bytes,
    )
    if not shards:
        raise EmptySelection("the selection is empty: earlier exports hold all of it")
    repeated = {IN_EARLIER_EXPORT: totals.repeated} if totals.repeated else {}
    manifest = ExportManifest(
        selection,
        shards,
        considered=considered,
        dropped=dict(sorted({**chosen.dropped, **repeated}.items())),
        verdicts=chosen.verdicts,
        languages={name: (n, words) for name, (n, words) in sorted(totals.languages.items())},
        sources=dict(sorted(totals.sources.items())),
        domains=len(totals.domains),
        tokenizer=VOCABULARY if options.count_tokens else None,
        removal=options.removal,
        file_format=options.file_format,
        program=options.program,
        takedowns=options.takedowns,
        lists=options.lists,
        excepted=options.earlier.digests if options.earlier else (),
        domain_bytes=totals.domains,
    )
    write_statements(
        folder, (it for all_ in chosen.stated for one in all_ for it in one.statements)
    )
    _write_papers(folder, manifest, is_signed=options.sign is not None)
    write_manifest(folder, manifest.as_json(), options.sign)
    return manifest


def _write_papers(folder: Path, manifest: ExportManifest, *, is_signed: bool) -> None:
    card = card_text(manifest, provenance_lines(manifest), is_signed=is_signed)
    (folder / CARD).write_text(card, encoding="utf-8")
    (folder / CROISSANT).write_bytes(croissant_bytes(manifest))
    (folder / SUMMARY).write_text(summary_text(manifest), encoding="utf-8")
    copy_script(folder)


def _new_rows(
    store: ObjectStore,
    files: list[DeltaFile],
    chosen: Chosen,
    sorted_days: Container[str],
    selection: ExportSelection,
    options: ExportOptions,
    totals: _Totals,
) -> Iterator[pl.DataFrame]:
    """Yield the chosen rows that no earlier export holds, and count the others."""
    for rows in _rows(store, files, chosen, sorted_days, selection, options):
        if options.earlier is None:
            yield rows
            continue
        new = rows.filter([not options.earlier.hold(text) for text in rows["sketch"]])
        totals.repeated += rows.height - new.height
        if new.height:
            yield new


def _files(store: ObjectStore, selection: ExportSelection) -> list[DeltaFile]:
    """Return the files of the chosen days, by day and table, of one version of each table."""
    wanted = frozenset(selection.days)
    found = [
        (file.partition, number, file)
        for number, dataset in enumerate((crawl_dataset(store), feed_dataset(store)))
        for file in dataset.files()
        if file.partition in wanted
    ]
    if not found:
        days = f"{selection.days[0]} to {selection.days[-1]}" if selection.days else "no day"
        raise EmptySelection(f"the corpus has no articles of {days}; build these days first")
    return [file for _, _, file in sorted(found, key=lambda one: one[:2])]


def _choose(
    store: ObjectStore,
    files: Iterable[DeltaFile],
    selection: ExportSelection,
    options: ExportOptions,
) -> tuple[Chosen, int, frozenset[str]]:
    """Return the chosen articles, how many there are in all, and the days that are in order."""
    clusters = options.clusters_of(selection.days)
    choice = ArticleChoice(selection, options.stated_usage, options.covers, clusters)
    considered = 0
    languages: Counter[str] = Counter()
    orders: dict[str, KeyOrder] = defaultdict(lambda: KeyOrder(_ORDER))
    for file in files:
        for frame in _frames(store, file, NARROW, options):
            orders[file.partition].add(frame)
            considered += frame.height
            languages.update(frame["language"].fill_null(""))
            choice.add(frame.with_columns(day=pl.lit(file.partition)).select(*NARROW))
    if options.require_languages:
        require_languages(selection, languages)
    sorted_days = frozenset(day for day, order in orders.items() if order.holds)
    return choice.chosen(), considered, sorted_days


def _frames(
    store: ObjectStore, file: DeltaFile, columns: Iterable[str], options: ExportOptions
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file with these columns; one that it lacks is null."""
    schema = ALL_ARTICLES.schema
    wanted = [name for name in columns if name in schema]
    for frame in iter_frames(store, file.path, columns=wanted, scratch=options.scratch):
        missing = {
            name: pl.lit(None, dtype=schema[name]) for name in wanted if name not in frame.columns
        }
        yield frame.with_columns(**missing)


def _rows(
    store: ObjectStore,
    files: list[DeltaFile],
    chosen: Chosen,
    sorted_days: Container[str],
    selection: ExportSelection,
    options: ExportOptions,
) -> Iterator[pl.DataFrame]:
    """Yield the chosen rows day by day, sorted by source, domain and address."""
    usages = pl.DataFrame(
        {"usage": range(len(chosen.stated)), "stated": _stated_rows(chosen, selection)},
        schema={"usage": pl.Int64(), "stated": TRAINING_EXPORT.schema["usage"]},
    )
    for day in dict.fromkeys(file.partition for file in files):
        wanted = chosen.rows.filter(pl.col("day") == day)
        if not wanted.height:
            continue
        frames = (
            _wanted(frame, wanted)
            for file in files
            if file.partition == day
            for frame in _frames(store, file, _COPIED, options)
        )
        in_order = frames if day in sorted_days else _sorted(frames, options)
        for rows in in_order:
            yield _exported(rows, day, usages, options)


def _sorted(frames: Iterable[pl.DataFrame], options: ExportOptions) -> Iterator[pl.DataFrame]:
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        runs = list(iter_runs(frames, Path(scratch), keys=_ORDER, run_bytes=_RUN_BYTES))
        yield from merge_runs(runs, keys=_ORDER)


def _wanted(frame: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    keyed = frame.with_columns(address=short_hash("url_hash"))
    chosen = wanted.select("source", "address", "usage")
    return keyed.join(chosen, on=["source", "address"], how="inner", maintain_order="left")


def _stated_rows(chosen: Chosen, selection: ExportSelection) -> list[list[dict[str, object]]]:
    return [
        [
            {
                "rule": str(rule),
                "bot": one.bot or rule.bot,
                "purpose": rule.purpose,
                "verdict": one.verdict,
                "surveyed_at": one.surveyed_at,
                "statements": [statement.id for statement in one.statements],
            }
            for rule, one in zip(selection.rules, stated, strict=True)
        ]
        for stated in chosen.stated
    ]


def _exported(
    rows: pl.DataFrame, day: str, usages: pl.DataFrame, options: ExportOptions
) -> pl.DataFrame:
    count = options.count_tokens
    made = rows.join(usages, on="usage", how="left", maintain_order="left").with_columns(
        id="url_hash", url="canonical_url", usage="stated", day=pl.lit(day)
    )
    sketch = options.sketch
    sketches = [sketch(text) if sketch else None for text in made["text"]]
    made = made.with_columns(pl.Series("sketch", sketches, dtype=pl.String))
    if count is not None:
        tokens = [count(text) for text in made["text"]]
        made = made.with_columns(pl.Series("tokens", tokens, dtype=pl.Int64))
    return made.select(_columns(options))


def _columns(options: ExportOptions) -> list[str]:
    return [name for name in TRAINING_EXPORT.schema if options.count_tokens or name != "tokens"]


def _schema(options: ExportOptions) -> "pa.Schema":
    import pyarrow as pa

    whole = arrow_schema(TRAINING_EXPORT, with_partitions=False)
    return pa.schema([whole.field(name) for name in _columns(options)])


_COPIED = tuple(
    dict.fromkeys(
        (
            "url_hash",
            "canonical_url",
            *(
                name
                for name in TRAINING_EXPORT.schema
                if name in ALL_ARTICLES.schema and name != "url"
            ),
        )
    )
)


VOCABULARY = "cl100k_base"
_PACKAGE = "bpe_openai"


def load_tokenizer() -> Callable[[str], int] | None:
    """Return the function that counts the tokens of a text; None without the extra.

    A text that quotes a special token is text.
    """
    if find_spec(_PACKAGE) is None:
        return None
    # The package's `Encoding` refuses texts of a million characters, and lists every token.
    count: Callable[[str], int] = (
        import_module(f"{_PACKAGE}._bindings").tokenizer_for_encoding(VOCABULARY).count
    )
    return count
