"""`news-platform ledger`: back up, restore, check and move the SQL ledger of a root."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click
import sqlalchemy as sa

from news_platform.cli.command import INPUT_FILE, OUTPUT_FILE, Output, command, resources_for
from news_platform.composition.takedown_parts import restore_obeying
from news_platform.errors import ConfigError, InputError, StorageError
from news_platform.resources import Resources
from news_platform.rss.ledger.status import require_articles
from news_platform.settings import Settings
from news_platform.storage.commit.root import RootAccess, read_world
from news_platform.storage.sql.engine import checked_url, ledger_url, open_engine, shown_url
from news_platform.storage.sql.ledger_backup import (
    LedgerCheck,
    LedgerManifest,
    backup_ledger,
    check_ledger,
    move_ledger,
    read_manifest,
    restore_ledger,
    unpacked,
)


@click.group()
def ledger() -> None:
    """Back up, restore, check and move the SQL ledger.

    The ledger holds feeds, articles and queues: it is data that nothing else can rebuild.
    """


@command(ledger)
@click.argument("file", type=OUTPUT_FILE)
def backup(resources: Resources, file: Path) -> Output:
    """Write all rows of one moment to FILE, and verify it.

    Others may write to the ledger meanwhile. FILE is a zip with the ledger as one SQLite file.
    """
    if file.exists():
        raise InputError(f"{str(file)!r} exists already: choose another name", thing=str(file))
    with _engine(_url(resources)) as engine:
        made_at = resources.clock.now().isoformat(timespec="seconds")
        manifest = backup_ledger(engine, file, world=_world(resources), made_at=made_at)
    return _backup_output("wrote", file, manifest)


@command(ledger, access=RootAccess.CREATE)
@click.argument("file", type=INPUT_FILE)
def restore(resources: Resources, file: Path) -> Output:
    """Fill the empty ledger of a root from FILE, and verify it.

    The ledger may be of the other kind: a backup of SQLite fills PostgreSQL, too. What was taken
    down since the backup is removed again.
    """
    manifest = read_manifest(file)
    world = manifest.world
    if world != _world(resources):
        raise ConfigError(
            f"the backup is of the {world} world, the root of the {_world(resources)} one: "
            "choose another root",
            thing=str(file),
        )
    with _engine(url := _url(resources)) as engine:
        try:
            rows, removed = restore_obeying(
                resources, manifest.made_at, partial(restore_ledger, engine, file)
            )
        finally:
            resources.ledger.close()
    output = _rows_output("restored", url, rows)
    text = f"{output.text}\nremoved again what is taken down: {removed} rows and files"
    return replace(output, text=text if removed else output.text)


@command(ledger, access=None)
@click.argument("file", type=INPUT_FILE, required=False)
def check(settings: Settings, file: Path | None) -> Output:
    """Check the whole ledger, or the backup FILE.

    Nothing is written. The exit code is 1 if something is wrong.
    """
    if file is not None:
        with unpacked(file) as ledger_file:
            found = check_ledger(str(sa.URL.create("sqlite", database=str(ledger_file))))
        if not found.problems:
            return _backup_output("whole:", file, read_manifest(file))
    else:
        found = _checked(resources_for(settings.root))
    failure = None
    if found.problems:
        failure = StorageError(f"ledger {found.ledger!r} is damaged: {found.problems[0]}")
    document = {"is_damaged": bool(found.problems), **asdict(found)}
    return Output(document, "\n".join(_check_lines(found)), failure)


@command(ledger, access=RootAccess.WRITE)
@click.option("--to", "target", help="URL of an empty ledger, such as postgresql+psycopg2://...")
def move(resources: Resources, target: str | None) -> Output:
    """Copy the ledger into another, empty database, and verify it.

    Give the address by NEWS_PLATFORM_LEDGER_TARGET_URL if it has a password: every user of the
    machine sees a command line. The old ledger stays as it is.
    """
    url = target or resources.settings.ledger_target_url
    if not url:
        raise ConfigError("no target: give --to, or set NEWS_PLATFORM_LEDGER_TARGET_URL")
    with _engine(_url(resources)) as source, _engine(url) as filled:
        if source.url == filled.url:
            raise ConfigError("the target is the ledger of the root itself: give another address")
        rows = move_ledger(source, filled)
    click.echo("now set NEWS_PLATFORM_LEDGER_URL to it for every process", err=True)
    return _rows_output("moved to", url, rows)


def _checked(resources: Resources) -> LedgerCheck:
    found = check_ledger(url := _url(resources))
    if found.problems:
        return found
    try:
        with _engine(url) as engine:
            require_articles(engine, resources.data_root.store)
    except StorageError as error:
        return replace(found, problems=(str(error),))
    return found


def _url(resources: Resources) -> str:
    return ledger_url(resources.data_root.store.url, resources.settings.ledger_url)


def _world(resources: Resources) -> str:
    return read_world(resources.data_root.store) or "real"


@contextmanager
def _engine(url: str) -> Iterator[sa.Engine]:
    engine = open_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _backup_output(done: str, file: Path, manifest: LedgerManifest) -> Output:
    size = file.stat().st_size
    text = (
        f"{done} {file}: {manifest.rows} rows of {len(manifest.tables)} tables, {size} bytes, "
        f"as of {manifest.made_at}"
    )
    document = {"file": str(file), "bytes": size, "rows": manifest.rows, **asdict(manifest)}
    return Output(document, text)


def _rows_output(done: str, url: str, rows: Mapping[str, int]) -> Output:
    shown = shown_url(checked_url(url))
    text = f"{done} {shown}: {sum(rows.values())} rows of {len(rows)} tables, all read back"
    return Output({"ledger": shown, "rows": sum(rows.values()), "tables": rows}, text)


def _check_lines(found: LedgerCheck) -> Iterator[str]:
    yield f"ledger {found.ledger}"
    if found.is_new:
        yield "there is no ledger yet"
        return
    outdated = ", upgraded when it is next opened" if found.is_outdated else ""
    yield f"revision {found.revision}{outdated}"
    for table, count in (found.rows or {}).items():
        yield f"  {table:<22} {count:>10} rows"
    yield from (f"DAMAGED: {problem}" for problem in found.problems)
    yield "see 'A damaged ledger' in docs/runbook.md" if found.problems else "no damage found"
