"""Read every byte under a root and every row of the ledger, and look for what is taken down.

An address in a column of foreign content, in an input or in a request is a mention. Anywhere else,
in names of files, logs and the free space of databases, it is a finding. The declarations of the
datasets say which is which: what no declaration knows is judged strictly.
"""

import io
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl
import sqlalchemy as sa
from isal import isal_zlib
from isal.igzip_lib import IsalError

from news_platform.datasets.dataset import Dataset, Role
from news_platform.datasets.registry import DATASETS
from news_platform.errors import StorageError
from news_platform.storage.objects.interfaces import INCOMING
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.row_roles import is_meant, role_of
from news_platform.storage.sql.sqlite_file import read_bytes
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import (
    TakedownTarget,
    contain_any,
    covered_hashes,
    iter_documents,
    name_pages,
    page_needles,
)

_GZIP = 31
_PIECE_BYTES = 1 << 20
_SQLITE, _ZSTD, _PARQUET, _ZIP = b"SQLite format 3\0", b"\x28\xb5\x2f\xfd", b"PAR1", b"PK\x03\x04"
# The ledger and the files beside it, which only SQLite or another process may open.
_LEDGER_FILE = re.compile(r"\.sqlite(-shm|-wal|-journal)?$")
_CELL_PLACE = re.compile(r'r="([A-Z]+)([0-9]+)"')
# The columns of a workbook that name a row. A cell without a header is judged strictly.
_ROW_CELLS = ("", "article_url", "article_url_canon", "feed_url_canon")
_ROW_ROLES = (Role.url, Role.url_hash, Role.domain, Role.host)
_FOREIGN_ROLES = (Role.html, Role.text, Role.links, Role.title, Role.people)
Content = Literal["mentions", "documents", "strict", "index"]
_FOLDERS = tuple((f"{one.place.folder}/", one) for one in DATASETS.values() if one.place.folder)
# What others deliver, the requests themselves, and the fictional outside.
_INPUTS = (
    *("takedowns/", "world/", "feeds.opml"),
    *(folder for folder, one in _FOLDERS if one.place.engine == "external"),
)
# Files that no declaration has: pages that belong to rows of the ledger, its log, the list of files
# of the demo, and JSON documents that name their page.
_OTHER_FILES: Mapping[str, Content] = {
    "articles/full_text/": "mentions",
    "articles/pages/": "mentions",
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
    """What a verification read, what it found of covered pages, and where they are mentioned."""

    takedowns: Takedowns
    _found: dict[StoredTrace, None] = field(default_factory=dict)
    mentioned: Counter[str] = field(default_factory=Counter)
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
        """Look for covered pages in texts: foreign ones mention them, any other is a finding."""
        given = list(texts)
        named = sum(name_pages(given, self.takedowns))
        if named and is_foreign:
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


def _content(path: str) -> Content:
    """Return how an address in a file of this path counts."""
    if path.startswith(_INPUTS):
        return "mentions"
    for start, content in _OTHER_FILES.items():
        if path.startswith(start):
            return content
    dataset = _dataset_of(path)
    match dataset.place.engine if dataset else "":
        case "index":
            return "index"
        case "files" if dataset and not dataset.columns_of(Role.url):
            return "mentions"
        case "files":
            return "documents"
    is_record = path.startswith(("domain_store/", "domain_buckets/")) and ".jsonl" in path
    return "documents" if is_record else "strict"


def verify_objects(
    store: ObjectStore, report: VerificationReport, *, within: str = "", share: float | None = None
) -> None:
    """Look at the name of every object, and at the content of all or a random share of them.

    `within` is the folder of the root that a store outside it stands for.
    """
    draw = random.Random(report.takedowns.fingerprint)
    for info in store.list():
        report.check_name(f"{within}{info.path}")
        if share is None or draw.random() < share:
            _read_object(store, info, f"{within}{info.path}", report)
    for path in _unfinished(store):
        _read_content(str(path), path.read_bytes(), report)


def _unfinished(store: ObjectStore) -> Iterator[Path]:
    """Yield the files that killed writers left in a local root; no listing shows them."""
    if store.local_folder is not None:
        yield from (one for one in store.local_folder.rglob(f"{INCOMING}/*") if one.is_file())


def _read_object(
    store: ObjectStore, info: ObjectInfo, path: str, report: VerificationReport
) -> None:
    try:
        if path.endswith(".gz"):
            report.files += 1
            report.bytes_read += info.size_bytes
            for block in _iter_blocks(_iter_inflated(store, info)):
                report.bytes_inflated += len(block)
                _read_text(path, block, report)
            return
        body = _read_body(store, info.path)
    except NotFound:
        return  # replaced since it was listed
    _read_content(path, body, report)


def _read_body(store: ObjectStore, path: str) -> bytes:
    folder = store.local_folder
    is_ledger = folder is not None and _LEDGER_FILE.search(path)
    return read_bytes(folder / path) if folder and is_ledger else store.read(path)


def _read_content(path: str, body: bytes, report: VerificationReport) -> None:
    report.files += 1
    report.bytes_read += len(body)
    if body.startswith(_PARQUET):
        _read_parquet(path, body, report)
    elif body.startswith(_ZIP):
        _read_workbook(path, body, report)
    elif body.startswith(_SQLITE):
        spaces = (space.decode("utf-8", "replace") for space in iter_free_space(body))
        report.check_texts(f"{path}: space that no row uses", spaces, is_foreign=False)
    else:
        content = _inflated_zstd(path, body) if body.startswith(_ZSTD) else body
        report.bytes_inflated += len(content) if content is not body else 0
        _read_text(path, content, report)


def _read_text(path: str, body: bytes, report: VerificationReport) -> None:
    kind = _content(path)
    if kind == "index":
        return  # its articles are read one by one
    has_lines = ".jsonl" in path
    content = body.decode("utf-8", "replace")
    texts = content.split("\n") if has_lines else [content]
    report.rows += len(texts) if has_lines else 0
    if kind == "documents":
        texts = list(_without_found(path, texts, report))
    report.check_texts(path, texts, is_foreign=kind != "strict")


def _without_found(path: str, texts: Sequence[str], report: VerificationReport) -> Iterator[str]:
    """Report the JSON documents about covered pages, and yield all others."""
    # Nearly all are of hosts that no request names: they are not parsed.
    likely = contain_any(texts, sorted(report.takedowns.names))
    for text, is_likely in zip(texts, likely, strict=True):
        documents = iter_documents(text.encode()) if is_likely else ()
        if any(map(report.target.covers_document, documents)):
            report.find(path, "a document about a covered page")
        else:
            yield text


def _inflated_zstd(path: str, body: bytes) -> bytes:
    # pyarrow costs 0.4 s, which only those who verify should pay.
    import pyarrow as pa

    try:
        with pa.input_stream(pa.py_buffer(body), compression="zstd") as stream:
            return bytes(stream.read())
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot inflate {path!r}: {error}", thing=path) from error


def _iter_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines in blocks of about a megabyte: members of gzip files may be small."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES and b"\n" in piece:
            content = b"".join(held)
            end = content.rfind(b"\n") + 1
            yield content[:end]
            held, size = [content[end:]], len(content) - end
    if size:
        yield b"".join(held)


def _iter_inflated(store: ObjectStore, info: ObjectInfo) -> Iterator[bytes]:
    """Yield the content of gzip members; raise StorageError where they are damaged."""
    with store.stream(info.path) as stream:
        member = isal_zlib.decompressobj(_GZIP)
        while piece := stream.read(_PIECE_BYTES):
            while piece:
                try:
                    yield member.decompress(piece)
                except IsalError as error:  # type: ignore[misc] # its stub names no class
                    raise StorageError(
                        f"cannot inflate {info.path!r}: {error}", thing=info.path
                    ) from error
                piece = b""
                if member.eof:
                    piece, member = member.unused_data, isal_zlib.decompressobj(_GZIP)


def _read_parquet(path: str, body: bytes, report: VerificationReport) -> None:
    """Look at every column of every row group, by its role in the dataset."""
    import pyarrow.parquet as pq

    file, dataset = pq.ParquetFile(io.BytesIO(body)), _dataset_of(path)
    roles = {one.name: one.role for one in dataset.all_columns} if dataset else {}
    for number in range(file.num_row_groups):
        rows = pl.DataFrame(pl.from_arrow(file.read_row_group(number, use_threads=False)))
        report.rows += rows.height
        report.bytes_inflated += int(rows.estimated_size())
        for column in rows.iter_columns():
            _read_column(path, column, roles.get(column.name, Role.fact), report)


def _read_column(path: str, column: pl.Series, role: Role, report: VerificationReport) -> None:
    values = _texts(column)
    if values.is_empty():
        return
    if role in _ROW_ROLES:
        for value in values.filter(report.target.covered_values(role, values)).unique():
            report.find(path, f"{column.name} {value!r}")
    else:
        # Nearly all are sorted out before they become Python objects.
        likely = values.filter(values.str.contains_any(list(page_needles(report.takedowns))))
        report.check_texts(path, likely.to_list(), is_foreign=role in _FOREIGN_ROLES)


def _texts(column: pl.Series) -> pl.Series:
    """Return the texts in a column, those in lists and structs included."""
    while isinstance(column.dtype, pl.List):
        column = column.explode()
    if isinstance(column.dtype, pl.Struct):
        column = column.struct.json_encode()
    return column.drop_nulls() if column.dtype == pl.String else pl.Series([], dtype=pl.String)


def _read_workbook(path: str, body: bytes, report: VerificationReport) -> None:
    """Read a workbook: the cells that name a row are its own, all others mention pages."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            report.bytes_inflated += len(content)
            cells = list(_iter_cells(content.decode("utf-8", "replace")))
            for cell in (cell for header, cell in cells if header in _ROW_CELLS):
                report.check_value(f"{path} {name}", Role.url, cell, name="cell")
            others = (cell for header, cell in cells if header not in _ROW_CELLS)
            report.check_texts(path, others, is_foreign=True)


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


def verify_tables(
    engine: sa.Engine, tables: Iterable[sa.Table], report: VerificationReport
) -> None:
    """Look at every row of every table of a database, on SQLite as on PostgreSQL."""
    declared = {table.name: table for table in tables}
    with read_transaction(engine) as connection:
        for name in sorted(sa.inspect(connection).get_table_names()):
            table = declared[name] if name in declared else _undeclared(connection, name)
            chosen = sa.select(table).execution_options(yield_per=500)
            for rows in connection.execute(chosen).partitions():
                report.rows += len(rows)
                for number, column in enumerate(table.columns):
                    _verify_column(column, [row[number] for row in rows], report)


def _undeclared(connection: sa.Connection, name: str) -> sa.Table:
    """Return a table whose columns have no roles, so that each is judged strictly."""
    columns = sa.inspect(connection).get_columns(name)
    return sa.Table(name, sa.MetaData(), *(sa.Column(it["name"], it["type"]) for it in columns))


def _verify_column(
    column: sa.Column[object], values: Iterable[object], report: VerificationReport
) -> None:
    place, role = f"ledger {column.table.name}", role_of(column)
    if role in _ROW_ROLES:
        for value in filter(partial(is_meant, column, target=report.target), values):
            report.find(place, f"{column.name} {value!r}")
    else:
        report.check_texts(
            place, filter(None, map(_text, values)), is_foreign=role in _FOREIGN_ROLES
        )


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "\n".join(value) if isinstance(value, tuple) else value if isinstance(value, str) else ""


_HEADER_BYTES = 100
_LEAVES = (0x0A, 0x0D)
_INNER = (0x02, 0x05)


def iter_free_space(file: bytes) -> Iterator[bytes]:
    """Yield the unused bytes of a database, piece by piece."""
    size = int.from_bytes(file[16:18], "big")
    size = 65_536 if size == 1 else size
    if size < 512:
        return
    free = set(_iter_free_pages(file, size))
    for number in range(1, len(file) // size + 1):
        page = file[(number - 1) * size : number * size]
        if number in free:
            yield page
        else:
            yield from _iter_gaps(page, _HEADER_BYTES if number == 1 else 0)


def _iter_free_pages(file: bytes, size: int) -> Iterator[int]:
    trunk, seen = int.from_bytes(file[32:36], "big"), set[int]()
    while trunk and trunk not in seen and trunk * size <= len(file):
        seen.add(trunk)
        page = file[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8], "big"), size // 4 - 2)
        # The trunk itself holds numbers first; what follows them is unused.
        yield from (_number(page, 8 + 4 * place) for place in range(count))
        trunk = _number(page, 0)
    yield from seen


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def _iter_gaps(page: bytes, start: int) -> Iterator[bytes]:
    kind = page[start] if len(page) > start else 0
    if kind not in (*_LEAVES, *_INNER):
        return  # an overflow page, which belongs to a row
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    content = int.from_bytes(page[start + 5 : start + 7], "big") or 65_536
    pointers = start + (8 if kind in _LEAVES else 12)
    yield page[pointers + 2 * cells : content]
    block, seen = int.from_bytes(page[start + 1 : start + 3], "big"), set[int]()
    while block and block not in seen and block + 4 <= len(page):
        seen.add(block)
        length = int.from_bytes(page[block + 2 : block + 4], "big")
        yield page[block + 4 : block + length]
        block = int.from_bytes(page[block : block + 2], "big")
