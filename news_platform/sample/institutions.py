"""Institutions of the sample world, read from the package's data, with their stored pages."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from news_platform.sample.blocks import Block, parse_block


@dataclass(frozen=True, slots=True)
class InstitutionPage:
    """One page as somebody stored it; `error` says why a failed one has no content."""

    name: str
    path: str
    title: str
    fetched_at: str
    blocks: tuple[Block, ...]
    aside: tuple[Block, ...]
    status_code: int = 200
    markdown_only: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Institution:
    """A fictional university, institute, hospital or college."""

    id: str
    name: str
    host: str
    country: str
    menu: tuple[str, ...]
    pages: tuple[InstitutionPage, ...] = field(repr=False)

    @property
    def origin(self) -> str:
        """Return the address of the front page without its slash."""
        return f"https://{self.host}"

    @property
    def domain(self) -> str:
        """Return the bare domain: what stands before `.example`, without any host name."""
        return ".".join(self.host.split(".")[-2:])


@cache
def institutions() -> tuple[Institution, ...]:
    """Read all institutions."""
    source = files("news_platform.sample").joinpath("texts", "institutions.toml")
    document = tomllib.loads(source.read_text(encoding="utf-8"))
    return tuple(_institution(entry) for entry in document["institution"])


def _institution(entry: Mapping[str, Any]) -> Institution:
    return Institution(
        id=entry["id"],
        name=entry["name"],
        host=entry["host"],
        country=entry["country"],
        menu=tuple(entry["menu"]),
        pages=tuple(_page(page) for page in entry["page"]),
    )


def _page(entry: Mapping[str, Any]) -> InstitutionPage:
    plain = {key: value for key, value in entry.items() if key not in ("blocks", "aside")}
    return InstitutionPage(
        **plain,
        blocks=tuple(map(parse_block, entry["blocks"])),
        aside=tuple(map(parse_block, entry["aside"])),
    )
