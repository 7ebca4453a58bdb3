"""Read the data files of the sample world, and render its templates."""

import html
import tomllib
from collections.abc import Iterator
from email.utils import format_datetime
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

import jinja2
from pydantic import TypeAdapter

T = TypeVar("T")

PACKAGE = files("news_platform.sample")
DATA = PACKAGE.joinpath("data")


def read_toml(name: str, kind: type[T], **more: object) -> T:
    """Read a TOML file as a value of a dataclass; `more` are fields that the file leaves out."""
    document = tomllib.loads(DATA.joinpath(name).read_text(encoding="utf-8"))
    return TypeAdapter(kind).validate_python({**document, **more})


def read_tree(folder: Traversable) -> dict[str, bytes]:
    """Read every file under a folder of the package, by its path in the folder."""
    return dict(_iter_files(folder, "")) if folder.is_dir() else {}


def _iter_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _iter_files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()


def render(template: str, **values: object) -> str:
    """Render a template of the data folder."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("news_platform.sample", "data/templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Templates escape with `|e` where a text may need it: they also render XML and markdown.
    environment.filters.update(e=html.escape, rfc2822=format_datetime)
    return environment
