"""Decide which outlet publishes which story when, with agency copies, updates and duplicates."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from urllib.parse import quote

from news_platform.sample.outlets import OUTLET_OF, OUTLETS, Outlet
from news_platform.sample.story import Chance, Plot, Story, phrasebook, with_ending, write_story
from news_platform.text.normalize import jaccard, shingles

# Every draw depends on this number and on the names of what is drawn for.
SEED = 20251103

WORLD_NOW = datetime(2025, 11, 3, 20, 0, tzinfo=UTC)
DAYS = (date(2025, 11, 1), date(2025, 11, 2), date(2025, 11, 3))

# Stories appear from five in the morning; the last one appears before the world's present moment.
_OPENING = time(5, tzinfo=UTC)
_LAST_MINUTE, _LAST_MINUTE_TODAY = 22 * 60, 19 * 60 + 20

# Share of common word triples above which two stories count as the same. It is well below the 0.8
# of near-duplicates, so that only intended copies are found as such.
_ALIKE = 0.55
_DRAFTS = 8
_RUN = 3


class Desk:
    """Assign stories in a fixed order, and replace a draft that repeats an earlier story."""

    def __init__(self) -> None:
        self._told: dict[Plot, list[frozenset[str]]] = defaultdict(list)

    def assign(self, outlet: Outlet, *, index: int, day: date) -> Story:
        """Return the first draft unlike all earlier stories, or else the least similar one."""
        plot = self._plot(outlet, index)
        best, likeness = None, 2.0
        for draft in self._drafts(outlet, plot, index=index, day=day):
            found = self._likeness(draft, plot)
            if found < likeness:
                best, likeness = draft, found
            if likeness < _ALIKE:
                break
        assert best is not None
        self._told[plot].append(shingles(best.text, _RUN))
        return best

    def _plot(self, outlet: Outlet, index: int) -> Plot:
        """Return the next plot in turn, so that an outlet repeats itself as late as possible."""
        plots = phrasebook(outlet.language).plots_about(outlet.voice.topics)
        order = Chance(SEED, "plots", outlet.key).sample(plots, len(plots))
        return order[index % len(plots)]

    def _drafts(self, outlet: Outlet, plot: Plot, *, index: int, day: date) -> Iterator[Story]:
        for attempt in range(_DRAFTS):
            chance = Chance(SEED, "story", outlet.key, index, attempt)
            book = phrasebook(outlet.language)
            yield write_story(book, plot, chance=chance, voice=outlet.voice, day=day)

    def _likeness(self, draft: Story, plot: Plot) -> float:
        told = shingles(draft.text, _RUN)
        return max((jaccard(told, old) for old in self._told[plot]), default=0.0)


@dataclass(frozen=True, slots=True)
class SampleArticle:
    """One story at one URL; `earlier` is its first version if it was updated.

    `kind` is own, copy (of another outlet's story), twin (same text, second address) or premium
    (behind a robots.txt rule).
    """

    outlet: Outlet
    number: int
    path: str
    story: Story
    author: str
    published_at: datetime
    kind: str = "own"
    earlier: Story | None = None
    updated_at: datetime | None = None
    mentions: str | None = None

    @property
    def url(self) -> str:
        """Return the URL as the outlet writes it."""
        return self.outlet.origin + self.path

    @property
    def changed_at(self) -> datetime:
        """Return the instant of the newest version."""
        return self.updated_at or self.published_at

    @property
    def keywords(self) -> tuple[str, ...]:
        """Return the tags of the article: its section and its places."""
        section = phrasebook(self.outlet.language).labels[self.story.topic]
        return (section, *self.story.places)


# Which agency sells how many stories to whom: the near-duplicates of the world.
_SYNDICATION = (
    ("meridian", ("calderpost", "harbourhill", "northmoor"), 16),
    ("kupfertal", ("muenstereck",), 6),
)
_TWINS = (("calderpost", 2), ("northmoor", 1))
_PREMIUM = ("calderpost", 3)
_UPDATED_PERCENT = 6
_MENTIONS_PERCENT = 12


@cache
def publish() -> tuple[SampleArticle, ...]:
    """Return every article of the world, sorted by outlet and time."""
    desk = Desk()
    own = {outlet.key: _own_articles(outlet, desk) for outlet in OUTLETS}
    copies = [copy for deal in _SYNDICATION for copy in _copies(own, deal)]
    for copy in copies:
        own[copy.outlet.key].append(copy)
    for key, count in _TWINS:
        own[key].extend(_twins(own[key], count))
    articles = [article for key in own for article in sorted(own[key], key=_by_time)]
    return tuple(_with_mention(article, articles) for article in articles)


def _by_time(article: SampleArticle) -> tuple[datetime, int]:
    return article.published_at, article.number


def _own_articles(outlet: Outlet, desk: Desk) -> list[SampleArticle]:
    times = sorted(_publishing_times(outlet))
    articles = [_write(outlet, desk, index=index, at=at) for index, at in enumerate(times)]
    if outlet.key == _PREMIUM[0]:
        articles[-_PREMIUM[1] :] = [_premium(article) for article in articles[-_PREMIUM[1] :]]
    return articles


def _publishing_times(outlet: Outlet) -> Iterable[datetime]:
    for index in range(outlet.articles):
        chance = Chance(SEED, "time", outlet.key, index)
        day = DAYS[index * len(DAYS) // outlet.articles]
        last = _LAST_MINUTE_TODAY if day == WORLD_NOW.date() else _LAST_MINUTE
        minutes = chance.number(0, last - _OPENING.hour * 60 - 1)
        opening = datetime.combine(day, _OPENING)
        yield opening + timedelta(minutes=minutes, seconds=chance.number(0, 59))


def _write(outlet: Outlet, desk: Desk, *, index: int, at: datetime) -> SampleArticle:
    chance = Chance(SEED, "article", outlet.key, index)
    story = desk.assign(outlet, index=index, day=at.date())
    number = _first_number(outlet) + 7 * index
    article = SampleArticle(
        outlet=outlet,
        number=number,
        path=_path(outlet, story, number=number, at=at),
        story=story,
        author=chance.pick(phrasebook(outlet.language).names["authors"]),
        published_at=at,
    )
    return _updated(article, chance) if chance.happens(_UPDATED_PERCENT) else article


def _first_number(outlet: Outlet) -> int:
    return Chance("number", outlet.key).number(100, 799) * 100


def _updated(article: SampleArticle, chance: Chance) -> SampleArticle:
    labels = phrasebook(article.outlet.language).labels
    return replace(
        article,
        earlier=article.story,
        story=with_ending(article.story, labels["update"], labels["correction"]),
        updated_at=_later(article.published_at, chance.number(200, 1100)),
    )


def _later(instant: datetime, minutes: int) -> datetime:
    """Return the instant some minutes later, but not after the world's present moment."""
    return min(instant + timedelta(minutes=minutes), WORLD_NOW - timedelta(minutes=20))


def _premium(article: SampleArticle) -> SampleArticle:
    return replace(article, kind="premium", path="/premium" + article.path)


def _copies(
    own: dict[str, list[SampleArticle]], deal: tuple[str, tuple[str, ...], int]
) -> Iterable[SampleArticle]:
    agency, buyers, count = deal
    chance = Chance(SEED, "deal", agency)
    for sold, original in enumerate(chance.in_order(own[agency], count)):
        for buyer in chance.sample(buyers, chance.number(1, len(buyers))):
            branch = Chance(SEED, "deal", agency, sold, buyer)
            yield _copy(original, OUTLET_OF[buyer], chance=branch, sold=sold)


def _copy(original: SampleArticle, outlet: Outlet, *, chance: Chance, sold: int) -> SampleArticle:
    story = _edited(original, chance)
    number = _first_number(outlet) + 7 * sold + 3
    at = _later(original.published_at, chance.number(20, 240))
    return SampleArticle(
        outlet=outlet,
        number=number,
        path=_path(outlet, story, number=number, at=at),
        story=story,
        author=original.outlet.name,
        published_at=at,
        kind="copy",
    )


def _edited(original: SampleArticle, chance: Chance) -> Story:
    """Edit an agency story: add a credit and keep it whole, cut its end, or shorten it."""
    story = original.earlier or original.story
    credited = f"{story.places[0].upper()} ({original.outlet.name}) – {story.lead}"
    rest = story.paragraphs[1:]
    kept = chance.pick((rest, rest, rest[:-1], rest[: max(4, len(rest) // 2)]))
    headline = chance.pick((story.headline, f"{story.headline} ({original.outlet.name})"))
    return replace(story, headline=headline, paragraphs=(credited, *kept))


def _twins(articles: list[SampleArticle], count: int) -> list[SampleArticle]:
    own = [article for article in articles if article.kind == "own" and not article.updated_at]
    return [
        replace(article, kind="twin", number=article.number + 1, path="/features" + article.path)
        for article in own[-count:]
    ]


def _with_mention(article: SampleArticle, articles: list[SampleArticle]) -> SampleArticle:
    """Make some articles link to an older one in the same language."""
    chance = Chance(SEED, "mention", article.url)
    if article.kind != "own" or not chance.happens(_MENTIONS_PERCENT):
        return article
    older = [
        other
        for other in articles
        if other.kind == "own"
        and other.outlet.language == article.outlet.language
        and other.published_at < article.published_at
    ]
    return replace(article, mentions=chance.pick(older).url) if older else article


def _path(outlet: Outlet, story: Story, *, number: int, at: datetime) -> str:
    match outlet.link_style:
        case "numbered":
            return f"/{story.topic}/{number}"
        case "query":
            return f"/article?id={number}"
        case "native":
            return f"/{story.topic}/{quote(_slug(story.headline))}-{number}/"
        case _:
            return f"/{at:%Y/%m/%d}/{story.topic}/{_latin_slug(story.headline)}-{number}.html"


def _slug(headline: str) -> str:
    return "-".join(re.findall(r"\w+", headline.lower())[:6])


def _latin_slug(headline: str) -> str:
    plain = unicodedata.normalize("NFKD", headline.replace("ß", "ss"))
    return _slug(plain.encode("ascii", "ignore").decode())
