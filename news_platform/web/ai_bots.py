"""List the AI crawlers whose robots.txt policy is reported, from `ai_bots.txt`.

Each change to the list gets a new version, because policies are comparable only under one list.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from news_platform.datasets import versions
from news_platform.errors import InputError

AI_BOTS_VERSION = versions.AI_BOTS


@dataclass(frozen=True, slots=True)
class AiBot:
    """One crawler, by its name in robots.txt; `source` is a page of its operator, or `list`.

    `training` collects data for models, `search` builds an index for model answers, `assistant`
    fetches on a user's request, `data` sells or shares what it collects.
    """

    name: str
    operator: str
    purpose: str
    source: str = "list"


def _read() -> Iterator[AiBot]:
    text = (files("news_platform.web") / "ai_bots.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield AiBot(*line.split("\t"))


AI_BOTS = tuple(_read())


class BotListDifference(NamedTuple):
    """The names that a newer list has and ours lacks, and those that only ours has."""

    missing: tuple[str, ...]
    only_ours: tuple[str, ...]


def parse_bot_list(body: bytes, *, name: str) -> list[str]:
    """Return the names of a list of crawlers: JSON keys, User-agent lines, or one per line."""
    text = body.decode("utf-8-sig", "replace")
    if text.lstrip().startswith("{"):
        try:
            return list(json.loads(text))
        except ValueError as error:
            raise InputError(f"invalid JSON in {name!r}: {error}", thing=name) from error
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    named = [line for line in lines if line.lower().startswith("user-agent:")]
    found = [line.partition(":")[2].strip() for line in named] if named else lines
    return [one for one in found if one and one != "*"]


def compare_bots(names: Iterable[str]) -> BotListDifference:
    """Compare the names of another list of crawlers with ours, ignoring case."""
    others = {name.lower(): name for name in names}
    ours = {bot.name.lower(): bot.name for bot in AI_BOTS}
    return BotListDifference(
        missing=tuple(sorted(others[key] for key in others.keys() - ours.keys())),
        only_ours=tuple(sorted(ours[key] for key in ours.keys() - others.keys())),
    )
