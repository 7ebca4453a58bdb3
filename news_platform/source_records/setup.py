"""Settings in, the flow's options out; the rule file is read here and nowhere else."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from news_platform.errors import ConfigError
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.pipeline import FlowOptions
from news_platform.source_records.rules import with_rules


def flow_options(given: Mapping[str, Any]) -> FlowOptions:
    """Return the options of these settings by name; a wrong one is a ConfigError."""
    return FlowOptions(segment_options(given), workers=given["workers"], samples=given["samples"])


def segment_options(given: Mapping[str, Any]) -> SegmentOptions:
    """Return how pages are cut by these settings; `rules` is the path of a rule file."""
    names = {field.name for field in fields(SegmentOptions)}
    options = SegmentOptions(**{name: given[name] for name in names & given.keys()})
    return with_rules(options, _read(given["rules"])) if given.get("rules") else options


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the rule file {path!r}: {error}", thing=path) from error
