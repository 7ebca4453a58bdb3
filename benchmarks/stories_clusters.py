"""Cluster the rated articles as days of a crawl, each edge scored by a model that saw neither host.

The links are those of the platform; what differs is the model, and that the days are those on which
articles were published.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.train_stories import Folds, RatedPairs
from news_platform.datasets.stories import STORY_DAYS
from news_platform.near_duplicates.candidates import THRESHOLD, jaccard_of, sketch_of
from news_platform.stories.links import Place, find_links
from news_platform.stories.similarity import (
    UNKNOWN,
    Ints,
    Sketches,
    StoryModel,
)

SAME, UNRELATED = 2.5, 1.0
"""Ratings, as 4 - overall: of one event, and of two."""


def taken(sketches: Sketches, articles: Sequence[int]) -> Sketches:
    """Return the sketches of some articles."""
    some = np.array(articles, dtype=np.int64)
    sizes = np.diff(sketches.starts)[some]
    ends = np.cumsum(sizes)
    places = np.arange(sizes.sum()) + np.repeat(sketches.starts[some] - ends + sizes, sizes)
    return Sketches(
        sketches.keys[places],
        sketches.weights[places],
        sketches.marks[places],
        np.concatenate(([0], ends)),
        sketches.languages[some],
        sketches.hosts[some],
        sketches.hours[some],
    )


@dataclass(frozen=True, slots=True)
class ListedDay:
    """A day whose articles are known by their places among all."""

    articles: Sequence[int]
    found: Sketches

    def __call__(self) -> Sketches:
        """Return the sketches of the day."""
        return self.found


class UnseenModel:
    """Scores each pair by a model that saw neither host."""

    def __init__(self, folds: Folds, least: int, least_root: int) -> None:
        self.least_score, self.least_root_score = least, least_root
        self.folds = folds
        self.of_day: dict[int, Sequence[int]] = {}

    def scores(self, left: Sketches, own: Ints, right: Sketches, other: Ints) -> Ints:
        """Return the score of each pair."""
        one = self.folds.folds[np.array(self.of_day[id(left)])[own]]
        two = self.folds.folds[np.array(self.of_day[id(right)])[other]]
        low, high = np.minimum(one, two), np.maximum(one, two)
        found = np.zeros(len(own), dtype=np.int64)
        for a, b in sorted(set(zip(low.tolist(), high.tolist(), strict=True))):
            mine = (low == a) & (high == b)
            model = self.folds.model(a, b)
            found[mine] = model.scores(left, own[mine], right, other[mine])
        return found


def cluster(pairs: RatedPairs, sketches: Sketches, model: UnseenModel) -> Mapping[int, int]:
    """Return the root of each dated article, by their places."""
    by_day: dict[str, list[int]] = {}
    order = sorted(
        range(len(pairs.articles)), key=lambda at: (pairs.articles[at].hour, pairs.articles[at].id)
    )
    for at in order:
        if pairs.articles[at].hour != UNKNOWN:
            day = datetime.fromtimestamp(pairs.articles[at].hour * 3600, UTC).date().isoformat()
            by_day.setdefault(day, []).append(at)
    days = {day: ListedDay(some, taken(sketches, some)) for day, some in by_day.items()}
    model.of_day.update({id(day.found): day.articles for day in days.values()})
    roots: dict[int, int] = {}
    for day in sorted(days):
        first = (date.fromisoformat(day) - timedelta(days=STORY_DAYS - 1)).isoformat()
        window = [days[one] for one in sorted(days) if first <= one <= day]
        firsts: dict[int, Place] = {}
        for number, one in enumerate(window[:-1]):
            for place, at in enumerate(one.articles):
                firsts.setdefault(roots[at], (number, place))
        # It has what a link asks of a model: scores, and the least that a link needs.
        links = find_links(cast(StoryModel, model), window, partial(_root, window, roots, firsts))
        for place, at in enumerate(days[day].articles):
            link = links.get(place)
            roots[at] = at if link is None else roots[window[link.to[0]].articles[link.to[1]]]
    return roots


def _root(
    window: Sequence[ListedDay],
    roots: Mapping[int, int],
    firsts: Mapping[int, Place],
    place: Place,
) -> Place:
    return firsts[roots[window[place[0]].articles[place[1]]]]


def joined_shares(pairs: RatedPairs, roots: Mapping[int, int]) -> dict[str, float | int]:
    """Return how many labelled pairs of at most 14 days are in one story: same, and unrelated."""
    near = pairs.hours_apart <= STORY_DAYS * 24
    together = np.array(
        [
            roots.get(one, -1) == roots.get(two, -2)
            for one, two in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        ]
    )
    same, others = near & (pairs.ratings >= SAME), near & (pairs.ratings <= UNRELATED)
    sizes = np.bincount(list(roots.values()))
    return {
        "same_in_one_story": float(together[same].mean()),
        "unrelated_in_one_story": float(together[others].mean()),
        "same_pairs": int(same.sum()),
        "unrelated_pairs": int(others.sum()),
        "largest_story": int(sizes.max()),
    }


def labelled_events(pairs: RatedPairs) -> Mapping[int, int]:
    """Return the event of each labelled article of one day, by their places.

    The articles are whole neighbourhoods: all of the day whose headline has one of some words.
    """
    written = json.loads(Path(__file__).with_name("story_labels.json").read_text("utf-8"))
    places = {one.id: at for at, one in enumerate(pairs.articles)}
    groups = [*written["events"], *([one] for one in written["alone"])]
    return {places[one]: event for event, group in enumerate(groups) for one in group}


def b_cubed(events: Mapping[int, int], clusters: Mapping[int, int]) -> dict[str, float]:
    """Return precision, recall and F1, each the mean over articles."""
    precision, recall = [], []
    for one, event in events.items():
        cluster = {other for other in events if clusters[other] == clusters[one]}
        same = {other for other in events if events[other] == event}
        precision.append(len(cluster & same) / len(cluster))
        recall.append(len(cluster & same) / len(same))
    p, r = float(np.mean(precision)), float(np.mean(recall))
    return {"precision": p, "recall": r, "f1": 2 * p * r / (p + r)}


def near_identical(pairs: RatedPairs, articles: Sequence[int]) -> Mapping[int, int]:
    """Return clusters of near-identical texts alone, as near_duplicates finds them."""
    sketches = {at: sketch_of(pairs.articles[at].text) for at in articles}
    found = {at: at for at in articles}
    for one, other in combinations(articles, 2):
        a, b = sketches[one], sketches[other]
        if a and b and jaccard_of(a.shingle_hashes, b.shingle_hashes) >= THRESHOLD:
            low, high = sorted((found[one], found[other]))
            found = {at: low if cluster == high else cluster for at, cluster in found.items()}
    return found
