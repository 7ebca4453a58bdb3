"""Where Dagster keeps its own state: DAGSTER_HOME, or the folder `.dagster` under a local root.

This module does not import Dagster, so that commands can look for a home without loading it.
"""

import os
import shutil
from pathlib import Path

from news_platform.errors import ConfigError
from news_platform.settings import Settings
from news_platform.storage.objects.store import open_store

FOLDER = ".dagster"
CONFIG = "dagster.yaml"


def find_home(settings: Settings) -> Path | None:
    """Return the home that is set, else the one under the root if there is one."""
    if settings.dagster_home is not None:
        return Path(settings.dagster_home)
    found = _own_home(settings)
    return found if found is not None and found.is_dir() else None


def is_read_only(home: Path) -> bool:
    """Return whether Dagster cannot open its SQLite databases in a home: it also writes to read."""
    if not os.access(home, os.R_OK | os.X_OK):
        return True
    runs = home / "history" / "runs.db"
    return runs.exists() and not all(os.access(path, os.W_OK) for path in (runs, runs.parent))


def home_problem(settings: Settings) -> str:
    """Return why Dagster's runs cannot be read, empty if they can."""
    home = find_home(settings)
    if home is None or not home.is_dir():
        return "there is no Dagster home"
    if is_read_only(home):
        return f"the Dagster home {str(home)!r} cannot be read, because it cannot be written"
    return ""


def make_home(settings: Settings) -> Path:
    """Return the home that is set, else make the one under the root, with our dagster.yaml."""
    home = find_home(settings) or _own_home(settings)
    if home is None:
        raise ConfigError(
            f"root {settings.root!r} is not a local folder: set DAGSTER_HOME to an absolute "
            "folder for Dagster's own state"
        )
    if settings.dagster_home is not None and not home.is_dir():
        raise ConfigError(f"DAGSTER_HOME={settings.dagster_home!r} is not a folder: create it")
    home.mkdir(parents=True, exist_ok=True)
    if not (home / CONFIG).exists():
        shutil.copy(Path(__file__).with_name(CONFIG), home / CONFIG)
    return home


def _own_home(settings: Settings) -> Path | None:
    if "://" in settings.root:
        return None
    folder = open_store(settings.root).local_folder
    return folder / FOLDER if folder else None
