"""Read every file under a root and every row of the ledger, and look for what is taken down.

An address in a column of foreign content, in an input or in a request is a mention. Anywhere else,
in names of files, logs and the free space of databases, it is a finding. The declarations of the
datasets say which is which: what no declaration knows is judged strictly. What cannot be read may
hold anything, and is listed.
"""

import io
import os
import random
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset, Role
from news_platform.datasets.registry import DATASETS
from news_platform.errors import StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.outlets import OUTLETS_FILE
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.row_roles import is_meant, role_of
from news_platform.storage.sql.sqlite_file import read_bytes
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import (
    EXPORTS,
    ROW_ROLES,
    TakedownTarget,
    contain_any,
    contain_needles,
    covered_hashes,
    iter_documents,
    name_pages,
    page_needles,
)
from news_platform.takedowns.unpack import (
    GZIP,
    PARQUET,
    SQLITE,
    UNREADABLE,
    is_packed,
    iter_blocks,
    iter_free_space,
    iter_inflated,
    iter_unpacked,
    joined,
    stated_size,
)

# Databases and the files beside them, which only SQLite or another process may open.
_DATABASE = re.compile(r"\.(sqlite3?|db)(-shm|-wal|-journal)?$")
_ROWS_AT_ONCE = 500
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_CELL_PLACE = re.compile(r'r="([A-Z]+)([0-9]+)"')
# The columns of a workbook that name a row. A cell without a header is judged strictly.
_ROW_CELLS = ("", "article_url", "article_url_canon", "feed_url_canon")
_FOREIGN_ROLES = (Role.html, Role.text, Role.links, Role.title, Role.people)
Content = Literal["mentions", "documents", "strict", "index"]
_FOLDERS = tuple((f"{one.place.folder}/", one) for one in DATASETS.values() if one.place.folder)
# What others deliver, the requests themselves, and the fictional outside.
_INPUTS = (
    *("takedowns/", "world/", "feeds.opml", OUTLETS_FILE),
    *(folder for folder, one in _FOLDERS if one.place.engine == "external"),
)
_INDEX_FILE = re.compile(r"/(?:[0-9a-f]{32}\.[a-z]+|meta\.json|\.managed\.json)$")
# Files that no declaration has: Dagster's own state, in which previews name domains, the ledger's
# log, the list of files of the demo, and JSON documents that name their page.
_OTHER_FILES: Mapping[str, Content] = {
    ".dagster/": "mentions",
    "ledger.sqlite-": "mentions",
    "demo.json": "mentions",
    "samples/source_records/": "documents",
    "quarantine/research/": "documents",
}


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """Something of a covered page that is stored: where, and what it is."""

    place: str
    what: str


@dataclass(slots=True)
class VerificationReport:
    """What a verification read, what it found of covered pages, and where they are mentioned.

    `tables` are those of the ledger, whose copies are read by their roles. `owned` are the files
    that rows of the ledger refer to: the row says which page such a file is of. `unreadable` has
    the reason for every place that could not be read.
    """

    takedowns: Takedowns
    tables: Mapping[str, sa.Table] = field(default_factory=dict)
    owned: frozenset[str] = frozenset()
    _found: dict[StoredTrace, None] = field(default_factory=dict)
    mentioned: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)
    files: int = 0
    bytes_read: int = 0
    bytes_inflated: int = 0
    rows: int = 0

    @property
    def target(self) -> TakedownTarget:
        """Return what is looked for, as engines need it."""
        return TakedownTarget(self.takedowns)

    @property
    def findings(self) -> tuple[StoredTrace, ...]:
        """Return what is stored of covered pages."""
        return tuple(self._found)

    @property
    def is_clean(self) -> bool:
        """Return whether everything was read and nothing found."""
        return not self._found and not self.unreadable

    def find(self, place: str, what: str) -> None:
        """Add a finding; the same place and thing count once."""
        self._found[StoredTrace(place, what)] = None

    def check_name(self, path: str) -> None:
        """Look at the name of a file and its folders."""
        hashes = covered_hashes(self.takedowns)
        for part in path.split("/") if not path.startswith(_INPUTS) else ():
            if part.split(".")[0] in hashes:
                self.find(path, f"file name {part!r}")
            elif "." in part and "=" not in part and self.takedowns.covers_domain(part):
                self.find(path, f"folder {part!r}")

    def check_value(self, place: str, role: Role, value: str, *, name: str = "") -> None:
        """Look at a value by which a row is found."""
        if self.target.covers(role, value):
            self.find(place, f"{name or role.value} {value!r}")

    def check_texts(self, place: str, texts: Iterable[str], *, is_foreign: bool) -> None:
        """Look for covered pages in texts: findings, unless they or their file only mention."""
        given = list(texts)
        named = sum(name_pages(given, self.takedowns))
        if named and (is_foreign or _content(place, self) == "mentions"):
            self.mentioned[place] += named
        elif named:
            self.find(place, "an address of a covered page")


def _dataset_of(path: str) -> Dataset | None:
    """Return the dataset of a file; the log of a table belongs to none."""
    for folder, dataset in _FOLDERS:
        if path.startswith(folder) and "/_delta_log/" not in path:
            is_whole = dataset.place.engine in ("delta", "index")
            if is_whole or dataset.place.holds(path):
                return dataset
    return None


def _content(path: str, report: VerificationReport) -> Content:
    """Return how an address in a file of this path counts."""
    if path.startswith(_INPUTS) or path in report.owned:
        return "mentions"
    for start, content in _OTHER_FILES.items():
        if path.startswith(start):
            return content
    dataset = _dataset_of(path)
    match dataset.place.engine if dataset else "":
        case "index" if _INDEX_FILE.search(path):
            return "index"
        case "files" if dataset and not dataset.columns_of(Role.url):
            return "mentions"
        case "files":
            return "documents"
    is_record = path.startswith(("domain_store/", "domain_buckets/")) and ".jsonl" in path
    return "documents" if is_record else "strict"


def verify_objects(
    store: ObjectStore,
    report: VerificationReport,
    *,
    within: str = "",
    share: float | None = None,
    ledger: Path | None = None,
) -> None:
    """Look at the name of every file, and at the content of all or a random share of them.

    `within` is the folder of the root that a store outside it stands for. `ledger` is the file of
    the ledger, whose rows `verify_tables` reads.
    """
    draw = random.Random(report.takedowns.fingerprint)
    for path, size in _iter_files(store):
        place = f"{within}{path}"
        report.check_name(place)
        if share is not None and draw.random() >= share:
            continue
        report.files += 1
        report.bytes_read += size
        try:
            file = store.local_folder / path if store.local_folder is not None else None
            if file is not None and (_DATABASE.search(path) or file == ledger):
                verify = _verify_free_space if file == ledger else _verify_members
                verify(place, read_bytes(file), report)
            else:
                with file.open("rb") if file is not None else store.stream(path) as stream:
                    _verify_stream(place, stream, report)
        except (NotFound, FileNotFoundError):
            continue  # replaced since it was listed
        except UNREADABLE as error:
            report.unreadable[place] = " ".join(str(error).split()) or type(error).__name__


def verify_exports(store: ObjectStore, report: VerificationReport) -> None:
    """Look at every file of the exports for what must not be exported."""
    found = replace(report, takedowns=report.takedowns.exported)
    for folder in (DATASETS[name].place.folder for name in EXPORTS):
        verify_objects(store.child(folder), found, within=f"{folder}/")
    report.files, report.bytes_read, report.rows = found.files, found.bytes_read, found.rows


def _iter_files(store: ObjectStore) -> Iterator[tuple[str, int]]:
    """Yield all files and sizes; of a folder also what no listing shows: unfinished files."""
    folder = store.local_folder
    if folder is None:
        yield from ((info.path, info.size_bytes) for info in store.list())
        return
    for place, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(place) / name for name in sorted(names)):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.stat().st_size


def _verify_stream(path: str, stream: Any, report: VerificationReport) -> None:
    head = stream.read(len(GZIP))
    if head != GZIP:
        _verify_members(path, head + stream.read(), report)
        return
    blocks = iter_blocks(iter_inflated(stream, head))
    for block in blocks:
        if is_packed(block):
            _verify_members(path, joined(chain([block], blocks)), report)
            return
        report.bytes_inflated += len(block)
        _verify_text(path, block, report)


def _verify_members(path: str, body: bytes, report: VerificationReport) -> None:
    for member, content in iter_unpacked(body):
        place = f"{path} {member}" if member else path
        report.bytes_inflated += len(content) if content is not body else 0
        if member:
            report.check_name(member)
        if content.startswith(PARQUET):
            _verify_parquet(path, place, content, report)
        elif content.startswith(SQLITE):
            _verify_database(place, content, report)
        elif _SHEET.fullmatch(member):
            _verify_sheet(place, content.decode("utf-8", "replace"), report)
        else:
            _verify_text(path, content, report, place=place)


def _verify_text(path: str, body: bytes, report: VerificationReport, *, place: str = "") -> None:
    kind = _content(path, report)
    if kind == "index":
        return  # its articles are read one by one
    has_lines = ".jsonl" in path
    is_wide = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    content = body.decode("utf-16" if is_wide else "utf-8", "replace")
    texts = content.split("\n") if has_lines else [content]
    report.rows += len(texts) if has_lines else 0
    if kind == "documents":
        texts = list(_without_found(path, texts, report))
    report.check_texts(place or path, texts, is_foreign=kind == "documents")


def _without_found(path: str, texts: Sequence[str], report: VerificationReport) -> Iterator[str]:
    """Report the JSON documents about covered pages, and yield all others."""
    # Nearly all are of hosts that no request names: they are not parsed.
    likely = contain_any(texts, page_needles(report.takedowns))
    for text, is_likely in zip(texts, likely, strict=True):
        documents = iter_documents(text.encode()) if is_likely else ()
        if any(map(report.target.covers_document, documents)):
            report.find(path, "a document about a covered page")
        else:
            yield text


def _verify_parquet(path: str, place: str, body: bytes, report: VerificationReport) -> None:
    """Look at every column of every row group, by its role, and at the metadata."""
    import pyarrow.parquet as pq

    file, dataset = pq.ParquetFile(io.BytesIO(body)), _dataset_of(path)
    report.check_texts(place, _metadata_texts(file), is_foreign=False)
    roles = {one.name: one.role for one in dataset.all_columns} if dataset else {}
    for number in range(file.num_row_groups):
        rows = pl.DataFrame(pl.from_arrow(file.read_row_group(number, use_threads=False)))
        report.rows += rows.height
        report.bytes_inflated += int(rows.estimated_size())
        for column in rows.iter_columns():
            role = roles.get(column.name, Role.fact)
            for values in _texts(column):
                _verify_column_texts(place, values.alias(column.name), role, report)


def _metadata_texts(file: Any) -> Iterator[str]:
    """Yield the metadata of the file, of its schema and of its columns."""
    schema = file.schema_arrow
    for one in (file.metadata, schema, *schema):
        yield from (text.decode("utf-8", "replace") for text in (one.metadata or {}).values())


def _verify_column_texts(
    place: str, values: pl.Series, role: Role, report: VerificationReport
) -> None:
    if role in ROW_ROLES:
        for value in values.filter(report.target.covered_values(role, values)).unique():
            report.find(place, f"{values.name} {value!r}")
    else:
        # Nearly all are sorted out before they become Python objects.
        is_likely = contain_needles(pl.col(values.name), page_needles(report.takedowns))
        likely = values.to_frame().filter(is_likely)[values.name]
        report.check_texts(place, likely.to_list(), is_foreign=role in _FOREIGN_ROLES)


def _texts(column: pl.Series) -> Iterator[pl.Series]:
    """Yield the texts in a column of any type, those in lists and structs included."""
    values = column.drop_nulls()
    match values.dtype:
        case pl.List() | pl.Array():
            yield from _texts(values.explode())
        case pl.Struct():
            for one in values.struct.unnest().iter_columns():
                yield from _texts(one)
        case pl.Categorical() | pl.Enum():
            yield values.unique().cast(pl.String)
        case pl.Binary():
            unpacked = (part for body in values for _, part in iter_unpacked(body))
            yield pl.Series([part.decode("utf-8", "replace") for part in unpacked], dtype=pl.String)
        case pl.String():
            yield values


def _verify_sheet(place: str, sheet: str, report: VerificationReport) -> None:
    """Read a sheet: the cells that name a row are its own, all others mention pages."""
    cells = list(_iter_cells(sheet))
    for cell in (cell for header, cell in cells if header in _ROW_CELLS):
        report.check_value(place, Role.url, cell, name="cell")
    others = (cell for header, cell in cells if header not in _ROW_CELLS)
    report.check_texts(place, others, is_foreign=True)


def _iter_cells(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a sheet, each with the header of its column; empty without one."""
    headers: dict[str, str] = {}
    for cell in sheet.split("<c ")[1:]:
        place = _CELL_PLACE.match(cell)
        column, row = place.groups() if place else ("", "")
        text = cell.partition("<t")[2].partition(">")[2].partition("</t>")[0]
        if row == "1":
            headers[column] = text
        elif text:
            yield headers.get(column, ""), text.replace("&amp;", "&")


def verify_tables(engine: sa.Engine, report: VerificationReport) -> None:
    """Look at every row of every table of the ledger, on SQLite as on PostgreSQL."""
    with read_transaction(engine) as connection:
        inspector = sa.inspect(connection)
        for name in sorted(inspector.get_table_names()):
            table = _table(name, [one["name"] for one in inspector.get_columns(name)], report)
            chosen = sa.select(table).execution_options(yield_per=_ROWS_AT_ONCE)
            for rows in connection.execute(chosen).partitions():
                _verify_rows("ledger", table, rows, report)


def _verify_database(place: str, body: bytes, report: VerificationReport) -> None:
    """Look at every row of a SQLite file, whoever wrote it, and at the space that no row uses."""
    _verify_free_space(place, body, report)
    if len(body) < (expected := stated_size(body)):
        raise StorageError(f"it has {len(body)} of {expected} bytes")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy.write_bytes(body)
        with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in names.fetchall():
                rows = connection.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')
                table = _table(name, [one[0] for one in rows.description], report)
                while some := rows.fetchmany(_ROWS_AT_ONCE):
                    _verify_rows(place, table, some, report)


def _verify_free_space(place: str, body: bytes, report: VerificationReport) -> None:
    spaces = (space.decode("utf-8", "replace") for space in iter_free_space(body))
    report.check_texts(f"{place}: space that no row uses", spaces, is_foreign=False)


def _table(name: str, columns: Sequence[str], report: VerificationReport) -> sa.Table:
    """Return the columns with the roles that the ledger's table of this name declares."""
    known = report.tables.get(name)
    declared = {one.name: one for one in known.columns} if known is not None else {}
    return sa.Table(
        name,
        sa.MetaData(),
        *(
            sa.Column(one, declared[one].type, info=declared[one].info)
            if one in declared
            else sa.Column(one, sa.types.NullType())
            for one in columns
        ),
    )


def _verify_rows(
    place: str, table: sa.Table, rows: Sequence[Any], report: VerificationReport
) -> None:
    report.rows += len(rows)
    where = f"{place} {table.name}"
    for number, column in enumerate(table.columns):
        role, values = role_of(column), [row[number] for row in rows]
        if role in ROW_ROLES:
            for value in filter(partial(is_meant, column, target=report.target), values):
                report.find(where, f"{column.name} {value!r}")
        else:
            texts = (text for value in values for text in _cell_texts(value))
            report.check_texts(where, texts, is_foreign=role in _FOREIGN_ROLES)


def _cell_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bytes() | memoryview():
            parts = iter_unpacked(bytes(value))
            yield from (part.decode("utf-8", "replace") for _, part in parts)
        case tuple() | list():
            yield "\n".join(map(str, value))
