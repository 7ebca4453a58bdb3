"""The sample world's own sentences: one TOML file a language in, typed phrasebooks out."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "ja", "pt", "ru")


@dataclass(frozen=True, slots=True)
class Plot:
    """What one kind of story can say; beats stand in the order in which they are told."""

    topic: str
    headlines: tuple[str, ...]
    leads: tuple[str, ...]
    beats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """All that is needed to write and typeset a story in one language."""

    language: str
    thousands: str
    word_space: str
    weekdays: tuple[str, ...]
    labels: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    plots: tuple[Plot, ...]
    general: tuple[str, ...]

    def plots_about(self, topics: tuple[str, ...]) -> tuple[Plot, ...]:
        """Return the plots on these topics, or all when none is named."""
        return tuple(plot for plot in self.plots if not topics or plot.topic in topics)


@cache
def phrasebook(language: str) -> Phrasebook:
    """Read the phrasebook of a language from the package's data."""
    source = files("news_platform.sample").joinpath("texts", f"{language}.toml")
    document = tomllib.loads(source.read_text(encoding="utf-8"))
    return Phrasebook(
        language=language,
        thousands=document["thousands"],
        word_space=document.get("word_space", " "),
        weekdays=tuple(document["weekdays"]),
        labels=document["labels"],
        names={kind: tuple(names) for kind, names in document["names"].items()},
        plots=tuple(
            Plot(
                topic=story["topic"],
                headlines=tuple(story["headlines"]),
                leads=tuple(story["leads"]),
                beats=tuple(story["beats"]),
            )
            for story in document["story"]
        ),
        general=tuple(document["general"]["sentences"]),
    )
