"""How well stories are found: scores against ratings by people, clusters, memory and speed.

With `--data FOLDER` the shipped model is scored on the pairs of that folder, without learning.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import RESULTS_FOLDER
from benchmarks.stories_clusters import (
    UnseenModel,
    b_cubed,
    cluster,
    joined_shares,
    labelled_events,
    near_identical,
)
from benchmarks.train_stories import Folds, RatedPairs, pearson
from news_platform.settings import load_settings
from news_platform.stories.similarity import Ints, load_model

Mask = npt.NDArray[np.bool_]
NEAR_HOURS = 72
SAME_RATING = 2.5
"""What a pair with `overall` of at most 1.5 is rated, as 4 - overall."""
_RESAMPLED = 1000


def auc(scores: Ints, is_same: Mask) -> float | None:
    """Return the area under the ROC curve; equal scores count half. None without both kinds."""
    same, others = int(is_same.sum()), int((~is_same).sum())
    if not same or not others:
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[is_same].sum() - same * (same + 1) / 2) / (same * others))


def interval(scores: Ints, is_same: Mask) -> tuple[float, float]:
    """Return the 95 % interval of the area by resampling pairs."""
    random = np.random.default_rng(1)
    found = []
    for _ in range(_RESAMPLED):
        some = random.integers(0, len(scores), len(scores))
        if (area := auc(scores[some], is_same[some])) is not None:
            found.append(area)
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def measured(pairs: RatedPairs, scores: Ints) -> dict[str, object]:
    """Return the figures of scores."""
    near, is_same = pairs.hours_apart <= NEAR_HOURS, pairs.ratings >= SAME_RATING
    one, two = near & ~pairs.is_cross, near & pairs.is_cross
    hosts = np.array(pairs.hosts)
    same_host = hosts[pairs.left] == hosts[pairs.right]
    return {
        "pearson": _pearson_of(scores, pairs, np.ones(len(scores), bool)),
        "auc_same_language": auc(scores[one], is_same[one]),
        "auc_cross_language": auc(scores[two], is_same[two]),
        "pearson_same_host": _pearson_of(scores, pairs, same_host),
        "pearson_other_host": _pearson_of(scores, pairs, ~same_host),
        "by_language_pair": {
            str(name): {
                "pairs": int((pairs.languages == name).sum()),
                "pearson": _pearson_of(scores, pairs, pairs.languages == name),
            }
            for name in np.unique(pairs.languages)
        },
    }


def _pearson_of(scores: Ints, pairs: RatedPairs, chosen: Mask) -> float | None:
    # Pairs that are all rated or scored the same have no correlation.
    some, ratings = scores[chosen], pairs.ratings[chosen]
    if len(np.unique(some)) < 2 or len(np.unique(ratings)) < 2:
        return None
    return pearson(some, ratings)


def main() -> None:
    """Score the shipped model, and models of folds where the data is that of the project."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("stories: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    folder = Path(data)
    # The project's own inputs lie beside others; a folder of one's own has the two files.
    is_own = (folder / "stories" / "pairs.csv").exists()
    pairs = RatedPairs(folder / "stories" if is_own else folder)
    started = time.process_time()
    sketches = pairs.sketches()
    seconds = time.process_time() - started
    features = pairs.features(sketches)
    figures = measured(pairs, load_model().trees.scores(features))
    figures["articles_per_cpu_second"] = len(pairs.articles) / seconds
    _show("shipped model", figures)
    if is_own:
        folds = Folds(pairs, features)
        scores = folds.scores()
        unseen = measured(pairs, scores)
        _show("hosts unseen", unseen)
        cross = pairs.is_cross
        near = cross & (pairs.hours_apart <= NEAR_HOURS)
        unseen["auc_cross_interval"] = interval(scores[near], pairs.ratings[near] >= SAME_RATING)
        zero = folds.scores(cross=False)
        unseen["cross_language_unseen"] = pearson(zero[cross], pairs.ratings[cross])
        held = folds.held_out()
        unseen["language_held_out"] = held
        unseen["language_held_out_mean"] = float(np.mean(list(held.values())))
        for name in ("auc_cross_interval", "cross_language_unseen", "language_held_out_mean"):
            print(f"{name}: {unseen[name]}")
        print({name: round(value, 3) for name, value in held.items()})
        figures["hosts_unseen"] = unseen
        model = load_model()
        least = UnseenModel(folds, model.least_score, model.least_root_score)
        roots, events = cluster(pairs, sketches, least), labelled_events(pairs)
        figures["clusters"] = joined_shares(pairs, roots)
        figures["b_cubed"] = {
            "alone": b_cubed(events, {at: at for at in events}),
            "near_identical": b_cubed(events, near_identical(pairs, list(events))),
            "stories": b_cubed(events, roots),
        }
        print(figures["clusters"], figures["b_cubed"])
    text = json.dumps(figures, indent=1)
    (RESULTS_FOLDER / "stories.json").write_text(f"{text}\n", encoding="utf-8")


def _show(title: str, figures: Mapping[str, object]) -> None:
    print(f"-- {title}")
    for name, value in figures.items():
        if isinstance(value, Mapping):
            for pair, found in value.items():
                print(f"   {pair:<8}{found['pairs']:>6}  {_three(found['pearson'])}")
        else:
            print(f"{name:<28}{_three(value)}")


def _three(value: object) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
