"""The editor takes plots in turn and sends back what was told before."""

from collections import Counter

from news_platform.sample.dates import DAYS
from news_platform.sample.newsroom import Desk
from news_platform.sample.outlets import OUTLETS
from news_platform.sample.story import phrasebook
from news_platform.text.words import jaccard, shingles

SPORT = next(outlet for outlet in OUTLETS if outlet.key == "tidewater")
FRENCH = next(outlet for outlet in OUTLETS if outlet.language == "fr")


def test_the_same_seed_assigns_the_same_stories() -> None:
    one, other = Desk(1), Desk(1)
    for index in range(6):
        story = one.assign(SPORT, index=index, day=DAYS[0])
        assert story == other.assign(SPORT, index=index, day=DAYS[0])


def test_another_seed_assigns_other_stories() -> None:
    assert Desk(1).assign(SPORT, index=0, day=DAYS[0]) != Desk(2).assign(
        SPORT, index=0, day=DAYS[0]
    )


def test_every_plot_is_told_before_one_is_told_again() -> None:
    desk = Desk(3)
    plots = phrasebook("fr").plots
    topics = [desk.assign(FRENCH, index=n, day=DAYS[0]).topic for n in range(len(plots))]
    assert Counter(topics) == Counter(plot.topic for plot in plots)


def test_a_sports_paper_gets_sport_only() -> None:
    desk = Desk(4)
    assert {desk.assign(SPORT, index=n, day=DAYS[0]).topic for n in range(8)} == {"sports"}


def test_a_draft_that_repeats_an_earlier_story_is_sent_back() -> None:
    told = Desk(5).assign(SPORT, index=0, day=DAYS[0])
    desk = Desk(5)
    first = desk.assign(SPORT, index=0, day=DAYS[0])
    again = desk.assign(SPORT, index=0, day=DAYS[0])
    assert first == told
    assert jaccard(shingles(first.text, 3), shingles(again.text, 3)) < 0.6
