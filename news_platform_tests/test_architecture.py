"""The direction of imports, and who may know Dagster or the environment."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "news_platform"
FEATURES = (
    "ccnews",
    "domain_store",
    "domain_metadata",
    "rss",
    "source_records",
    "near_duplicates",
    "stories",
    "corpus",
    "search",
)
# The shared ground; each package may also import those listed before it.
GROUND = (
    "errors",
    "logs",
    "datasets",
    "text",
    "html",
    "web",
    "storage",
    "isolation",
    "articles",
    "takedowns",
)

# What each package or top-level module may import of ours, besides itself.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": (),
    "setting_sections": (),
    "settings": ("errors", "logs", "setting_sections"),
    **{name: GROUND[:place] for place, name in enumerate(GROUND)},
    **dict.fromkeys(FEATURES, GROUND),
    "sample": ("errors", "datasets", "storage", "web", "text", "settings", "resources"),
    "resources": (*GROUND, *FEATURES, "settings", "sample"),
    "composition": (*GROUND, *FEATURES, "settings", "resources"),
    "api": (*GROUND, *FEATURES, "settings", "resources", "composition"),
    "defs": (*GROUND, *FEATURES, "settings", "resources", "composition", "api"),
    "operations": (
        *GROUND,
        *FEATURES,
        "settings",
        "resources",
        "composition",
        "defs",
        "cluster",
    ),
    # The status page plans as the sensors do; what else the server shows needs no Dagster.
    "server": (
        *GROUND,
        *FEATURES,
        "settings",
        "resources",
        "composition",
        "api",
        "defs",
        "operations",
    ),
    # A worker process starts from Celery's command line, so its app reads its own settings.
    "cluster": ("errors", "logs", "datasets", "storage", "settings", "resources"),
    "cli": (
        *GROUND,
        *FEATURES,
        "settings",
        "resources",
        "composition",
        "api",
        "operations",
        "server",
    ),
    # Dagster's processes start by importing the definitions, which therefore forbid core files.
    "definitions": ("defs", "cluster", "resources", "settings", "isolation", "logs"),
    "__init__": ("api",),
}
KNOWS_DAGSTER = ("defs", "cluster", "definitions")
# The demo runs the graph in this process, and `status` plans as the sensors do.
ON_THE_GRAPH = (Path("cli/demo.py"), Path("cli/operations.py"))
SOURCES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def _place(path: Path) -> str:
    return path.with_suffix("").parts[0]


def _tree(path: Path) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def _imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _forbidden_imports(path: Path) -> Iterator[str]:
    place = _place(path)
    allowed = {
        place,
        *MAY_IMPORT[place],
        *(("definitions", "defs", "sample") if path in ON_THE_GRAPH else ()),
    }
    if "settings" in allowed:
        allowed.add("setting_sections")
    for name in _imported_modules(path):
        if name.startswith("news_platform.") and name.split(".")[1] not in allowed:
            yield f"{path} imports {name}"


def test_imports_point_one_way() -> None:
    assert [line for path in SOURCES for line in _forbidden_imports(path)] == []


def test_only_the_shell_imports_dagster() -> None:
    importing = {
        path
        for path in SOURCES
        for name in _imported_modules(path)
        if name.split(".")[0].startswith("dagster")
    }
    assert [path for path in importing if _place(path) not in KNOWS_DAGSTER] == []


def test_only_settings_name_environment_variables() -> None:
    naming = [
        path
        for path in SOURCES
        if "os.environ[" in (text := (PACKAGE / path).read_text(encoding="utf-8"))
        or "getenv(" in text
    ]
    assert naming == []


# The one place where a unit's failure ends, and the outermost frame of a worker process, or of an
# item that a pool without workers runs itself.
BROAD_HANDLERS = {"isolation/boundary.py": 1, "isolation/pool.py": 1, "isolation/worker.py": 2}
_BROAD = {"Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"}


def _catches_everything(path: Path) -> Iterator[str]:
    """Yield the handlers that would end any failure: broad ones that do not always raise."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            if not isinstance(node.body[-1], ast.Raise):
                yield f"{path}:{node.lineno}"
        elif isinstance(node, ast.Call) and "suppress" in ast.unparse(node.func):
            yield from (f"{path}:{node.lineno}" for kind in node.args if _is_broad(kind))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _may_swallow(node):
            yield f"{path}:{node.lineno}"


def _may_swallow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is the end of a block that may end its exception, too."""
    is_end = node.name in {"__exit__", "__aexit__"}
    return is_end and (node.returns is None or ast.unparse(node.returns) != "None")


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(one is None or ast.unparse(one).split(".")[-1] in _BROAD for one in kinds)


def test_only_the_boundary_catches_every_exception() -> None:
    """Ruff's BLE does not see a handler that raises in one branch and swallows in another."""
    found = {path.as_posix(): len(list(_catches_everything(path))) for path in SOURCES}
    assert {path: count for path, count in found.items() if count} == BROAD_HANDLERS


# Where the sample world may be mentioned besides `sample/` itself.
KNOWS_THE_SAMPLE = {
    "resources.py": "chooses between the sample's resources and real ones",
    "cli/demo.py": "runs the whole graph on the sample world",
    "setting_sections/platform.py": "defines NEWS_PLATFORM_SAMPLE and NEWS_PLATFORM_SAMPLE_WORLD",
    "storage/commit/root.py": "stores which world a root holds",
}
# "samples of blocks" and "a sample of domains" are ordinary English, not the world.
_SAMPLE_WORLD = re.compile(
    r"is_sample|news_platform\.sample|NEWS_PLATFORM_SAMPLE|Sample[A-Z]"
    r"|SAMPLE_(?!CHARS)|settings\.sample|the sample(?! of)\b"
    r"|sample('s|[ _](world|root|day|host|site))",
)


def test_no_production_module_knows_the_sample_world() -> None:
    knowing = {
        path.as_posix()
        for path in SOURCES
        if _place(path) != "sample"
        and _SAMPLE_WORLD.search((PACKAGE / path).read_text(encoding="utf-8"))
    }
    assert knowing == KNOWS_THE_SAMPLE.keys()


def test_no_module_is_longer_than_450_lines() -> None:
    lengths = {path: (PACKAGE / path).read_text(encoding="utf-8").count("\n") for path in SOURCES}
    assert {path: lines for path, lines in lengths.items() if lines > 450} == {}
