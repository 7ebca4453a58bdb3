"""The direction of imports, and who may know Dagster or the environment."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "news_platform"
FEATURES = (
    "ccnews",
    "domain_store",
    "domain_metadata",
    "rss",
    "source_records",
    "near_duplicates",
)
# The shared ground; each package may also import those listed before it.
GROUND = ("errors", "datasets", "text", "html", "web", "storage", "isolation", "articles")

# What each package or top-level module may import of ours, besides itself.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": (),
    "environment": ("errors",),
    "settings": ("errors", "environment"),
    **{name: GROUND[:place] for place, name in enumerate(GROUND)},
    **dict.fromkeys(FEATURES, GROUND),
    "sample": ("errors", "datasets", "storage", "web", "text"),
    "resources": (*GROUND, "settings", "sample"),
    "api": (*GROUND, *FEATURES, "settings", "resources"),
    "defs": (*GROUND, *FEATURES, "settings", "sample", "resources", "api"),
    # A worker process starts from Celery's command line, so its app reads its own settings.
    "cluster": ("errors", "settings"),
    "cli": (*GROUND, *FEATURES, "settings", "sample", "resources", "api"),
    "definitions": ("defs", "resources", "settings"),
    "__init__": ("api",),
}
KNOWS_DAGSTER = ("defs", "cluster", "definitions")
SOURCES = sorted(PACKAGE.rglob("*.py"))


def _place(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def _imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    place = _place(path)
    allowed = {place, *MAY_IMPORT[place]}
    if path == PACKAGE / "cli" / "demo.py":
        allowed |= {"definitions", "defs"}
    ours = {
        name.split(".")[1] for name in _imported_modules(path) if name.startswith("news_platform.")
    }
    assert ours <= allowed


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_shell_knows_dagster(path: Path) -> None:
    knows = any(name.split(".")[0].startswith("dagster") for name in _imported_modules(path))
    assert not knows or _place(path) in KNOWS_DAGSTER or path == PACKAGE / "cli" / "demo.py"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_init_file_holds_a_docstring_and_nothing_else(path: Path) -> None:
    if path.name != "__init__.py" or path.parent == PACKAGE:
        return
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert len(body) == 1 and isinstance(body[0], ast.Expr)


def test_only_settings_name_environment_variables() -> None:
    naming = [
        str(path.relative_to(PACKAGE))
        for path in SOURCES
        if "os.environ[" in (text := path.read_text(encoding="utf-8")) or "getenv(" in text
    ]
    assert naming == []
