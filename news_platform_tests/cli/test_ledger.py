"""`news-platform ledger`: files, refusals and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform.composition.home import make_home
from news_platform.errors import ConfigError, InputError, StorageError
from news_platform.resources import open_resources
from news_platform.rss.ledger.tables import CONFIG
from news_platform.settings import Settings
from news_platform.storage.sql.engine import open_engine, read_transaction
from news_platform_tests.rss.stages import add_pending, rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a real root whose ledger has one row."""
    folder = tmp_path / "root"
    resources = open_resources(Settings(root=str(folder)))
    with resources.ledger.engine.begin() as connection:
        row = {"key": "k", "value": "v", "updated_at": resources.clock.now(), "changed_seq": 1}
        connection.execute(sa.insert(CONFIG).values(**row))
    resources.ledger.close()
    return folder


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, ["ledger", *map(str, words)])


def _refused(*words: object) -> BaseException:
    done = _run(*words)
    assert done.exception is not None, done.output
    return done.exception


def _values(file: Path) -> list[str]:
    engine = open_engine(f"sqlite:///{file}")
    with read_transaction(engine) as connection:
        found = list(connection.execute(sa.select(CONFIG.c.value)).scalars())
    engine.dispose()
    return found


def test_a_ledger_goes_from_root_to_root_by_a_backup(root: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "ledger.zip", tmp_path / "other"
    made = json.loads(_run("backup", file, "--root", root, "--json").stdout)
    assert (made["rows"], made["tables"]["config"]) == (2, 1)
    assert _run("check", file).stdout.startswith(f"whole: {file}: 2 rows of")
    done = _run("restore", file, "--root", other)
    assert "/other/ledger.sqlite: 2 rows of" in done.stdout
    assert _values(other / "ledger.sqlite") == ["v"]
    assert isinstance(_refused("restore", file, "--root", other), InputError)
    assert "exists already" in str(_refused("backup", file, "--root", root))


@pytest.mark.parametrize("scope", ["both", "stored"])
def test_what_was_taken_down_since_a_backup_does_not_come_back(tmp_path: Path, scope: str) -> None:
    root, file = tmp_path / "root", tmp_path / "ledger.zip"
    resources = open_resources(Settings(root=str(root)))
    add_pending(resources.ledger.engine, "https://post.example/a", "https://other.example/b")
    resources.ledger.close()
    assert _run("backup", file, "--root", root).exit_code == 0
    words = ("--domain", "post.example", "--reason", "x", "--scope", scope)
    for one in (("add", *words), ("apply",), ("verify",)):
        done = CliRunner().invoke(main, ["takedown", *one, "--root", str(root)])
        assert done.exit_code == 0, done.output
    (root / "ledger.sqlite").unlink()
    done = _run("restore", file, "--root", root)
    assert "removed again what is taken down: 4 rows" in done.stdout
    resources = open_resources(Settings(root=str(root)))
    assert [row.article_url_canon for row in rows(resources.ledger.engine)] == [
        "https://other.example/b"
    ]
    resources.ledger.close()
    assert list((root / "takedowns" / "pending").rglob("all")) == []


def test_a_backup_of_the_sample_world_is_refused_by_a_real_root(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.zip"
    assert _run("backup", file, "--root", root).exit_code == 0
    monkeypatch.setenv("NEWS_PLATFORM_SAMPLE", "1")
    error = _refused("restore", file, "--root", tmp_path / "sample")
    assert "is of the real world, the root of the sample one" in str(error)


def test_a_ledger_moves_to_the_address_of_the_setting(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "give --to" in str(_refused("move", "--root", root))
    own = f"sqlite:///{root}/ledger.sqlite"
    assert isinstance(_refused("move", "--root", root, "--to", own), ConfigError)
    target = tmp_path / "new.sqlite"
    monkeypatch.setenv("NEWS_PLATFORM_LEDGER_TARGET_URL", f"sqlite:///{target}")
    done = _run("move", "--root", root)
    assert "new.sqlite: 2 rows of" in done.stdout
    assert "now set NEWS_PLATFORM_LEDGER_URL" in done.stderr
    assert _values(target) == _values(root / "ledger.sqlite") == ["v"]


def test_check_names_the_tables_and_what_is_wrong(root: Path) -> None:
    done = _run("check", "--root", root)
    assert done.exit_code == 0
    assert "no damage found" in done.stdout
    file = root / "ledger.sqlite"
    file.write_bytes(file.read_bytes()[:-5_000])
    broken = _run("check", "--root", root, "--json")
    assert isinstance(broken.exception, StorageError)
    found = json.loads(broken.stdout)
    assert found["is_damaged"]
    assert "bytes" in found["problems"][0]


_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def _read_only(root: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run something that sees the root on a read-only file system."""
    command = ("unshare", "-rm", "sh", "-c", _READ_ONLY, "sh", root, *words)
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_a_read_only_root_can_be_read_explained_checked_and_backed_up(
    root: Path, tmp_path: Path
) -> None:
    if _read_only(root, "true").returncode:
        pytest.skip("this machine lets no user mount file systems")
    # SQLite cannot even read the databases of Dagster's home there.
    with dg.DagsterInstance.from_config(str(make_home(Settings(root=str(root))))):
        pass
    for words in (
        ("ledger", "check"),
        ("ledger", "backup", tmp_path / "x.zip"),
        ("explain", "https://post.example/a"),
        ("feeds", "list"),
        ("takedown", "verify"),
        ("status",),
    ):
        done = _read_only(root, sys.executable, "-m", "news_platform.cli", *words, "--root", root)
        assert done.returncode == (1 if "explain" in words else 0), done.stderr
        assert "error" not in done.stderr.replace("error: nothing is known", "")
    assert _run("check", tmp_path / "x.zip").exit_code == 0
    command = (sys.executable, "-m", "news_platform.cli", "doctor", "--json", "--root", root)
    found = {
        one["check"]: one["state"]
        for one in json.loads(_read_only(root, *command).stdout)["findings"]
    }
    # The crawl is not reached from here.
    assert found.pop("crawl") and found["root"] == "warning" and "wrong" not in found.values()
    assert found["dagster home"] == "skipped"
    done = _read_only(
        root, sys.executable, "-m", "news_platform.cli", "rss", "ensure", "--root", root
    )
    assert done.returncode == 1 and "read-only" in done.stderr and "Traceback" not in done.stderr
