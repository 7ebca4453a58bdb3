"""The editor of the sample world: no two stories on one plot may read alike."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date

from news_platform.sample.chance import Chance
from news_platform.sample.outlets import Outlet
from news_platform.sample.phrasebook import Plot, phrasebook
from news_platform.sample.story import Story, write_story
from news_platform.text.shingles import jaccard, shingles

# Share of common word triples from which two stories count as told twice: well below the 0.8 at
# which near-duplicates are looked for, so that only copies are found there.
_ALIKE = 0.55
_DRAFTS = 8
_RUN = 3


class Desk:
    """Assigns stories in a fixed order and sends a draft back that repeats an earlier one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._told: dict[Plot, list[frozenset[str]]] = defaultdict(list)

    def assign(self, outlet: Outlet, *, index: int, day: date) -> Story:
        """Return the next story: the first draft unlike all before it, else the least like."""
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
        """Take plots in turn, so that an outlet repeats itself as late as it can."""
        plots = phrasebook(outlet.language).plots_about(outlet.voice.topics)
        order = Chance(self.seed, "plots", outlet.key).sample(plots, len(plots))
        return order[index % len(plots)]

    def _drafts(self, outlet: Outlet, plot: Plot, *, index: int, day: date) -> Iterator[Story]:
        for attempt in range(_DRAFTS):
            chance = Chance(self.seed, "story", outlet.key, index, attempt)
            book = phrasebook(outlet.language)
            yield write_story(book, plot, chance=chance, voice=outlet.voice, day=day)

    def _likeness(self, draft: Story, plot: Plot) -> float:
        told = shingles(draft.text, _RUN)
        return max((jaccard(told, old) for old in self._told[plot]), default=0.0)
