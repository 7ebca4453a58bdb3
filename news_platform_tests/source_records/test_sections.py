"""Heading paths and section rules."""

from dataclasses import replace

import pytest

from news_platform.source_records.options import SectionRules, SegmentOptions
from news_platform_tests.source_records.pages import PROSE, cut, fates, texts

RULES = SectionRules()


def test_the_section_is_the_path_of_headings_above() -> None:
    page = (
        "<p>Words above every heading here</p><h1>Faculty</h1><p>Words of the faculty</p>"
        "<h3>Labs</h3><p>Words of the laboratories</p><h2>People</h2><p>Words of the people</p>"
    )
    options = SegmentOptions(boilerplate=replace(SegmentOptions().boilerplate, lead_chars=0))
    assert [record.provenance.section for record in cut(page, options).records] == [
        None,
        "Faculty",
        "Faculty > Labs",
        "Faculty > People",
    ]


def test_a_heading_in_a_menu_heads_no_section() -> None:
    page = f"<nav><h2>Menu of the site</h2></nav><p>{PROSE}</p>"
    assert cut(page).records[0].provenance.section is None


@pytest.mark.parametrize(
    "item", ["Admissions", "contact us", "News & Events", "News and Events", "» Alumni", "Careers."]
)
def test_a_menu_item_in_a_list_is_dropped_before_its_length_is_looked_at(item: str) -> None:
    page = f"<h2>Departments</h2><ul><li>Computer Science</li><li>{item}</li></ul>"
    assert fates(page)[item] == "navigation_item"


@pytest.mark.parametrize(
    "text", ["Apply now to our school", "Learn more", "Sign up for the tour", "Book an appointment"]
)
def test_a_call_to_action_is_dropped(text: str) -> None:
    assert fates(f"<p>{PROSE}</p><p>{text}</p>")[text] == "call_to_action"


@pytest.mark.parametrize(
    "text",
    [
        "Readings in the History of Science",
        "Getting a degree takes three years of work",
        "Open Access Publishing is what the library does for all authors of the faculty.",
    ],
)
def test_a_text_that_only_begins_like_a_call_stays(text: str) -> None:
    assert fates(f"<p>{PROSE}</p><p>{text}</p>")[text] is None


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("<p>See the following example:</p>", None),
        ("<li>Use the End object snap.</li>", None),
        ("<pre>use tokio::runtime::Runtime;</pre>", None),
        ("<p>Book a visit.</p>", "call_to_action"),
        ("<p><a>See the case study of the year.</a></p>", "call_to_action"),
        ("<p>See the following example</p>", "call_to_action"),
    ],
)
def test_a_sentence_or_code_is_an_instruction_and_no_call(block: str, reason: str | None) -> None:
    decision = cut(f"<p>{PROSE}</p>{block}").decisions[1]
    assert decision.reason == reason


NAMES = ["Open University", "Play Therapy Unit", "Search and Rescue Unit", "Order of Physicians"]


@pytest.mark.parametrize("text", NAMES)
@pytest.mark.parametrize("tag", ["p", "li", "div", "td"])
def test_a_name_that_begins_like_a_call_is_a_name(tag: str, text: str) -> None:
    assert fates(f"<p>{PROSE}</p><{tag}>{text}</{tag}>")[text] is None


def test_what_may_be_a_call_is_a_name_among_names_and_a_call_among_calls() -> None:
    names = ("Play Therapy Rooms", "Speech and Language", "Occupational Medicine")
    calls = ("Play Therapy Rooms", "Book appointments", "Download brochures")
    for items, reason in ((names, None), (calls, "call_to_action")):
        page = f"<p>{PROSE}</p><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
        assert fates(page)["Play Therapy Rooms"] == reason


@pytest.mark.parametrize(
    "text",
    [
        "Copyright 2025 by the university",
        "Last updated on the third of May",
        "This site uses cookies to remember you",
        "Was this page helpful to you?",
        "Showing 24 of 133 results",
    ],
)
def test_a_notice_is_dropped(text: str) -> None:
    assert fates(f"<p>{PROSE}</p><p>{text}</p>")[text] == "notice"


def test_the_rules_can_be_changed() -> None:
    rules = replace(RULES, navigation_items=("computer science",), sections=("quick",))
    page = (
        "<h2>Departments</h2><ul><li>Computer Science</li><li>Admissions Department</li></ul>"
        "<h2>Quick facts</h2><p>Nothing of this is needed</p><h3>More</h3><p>Nor is any of that</p>"
        "<h2>People</h2><p>Everybody who works here</p>"
    )
    found = fates(page, SegmentOptions(sections=rules))
    assert found["Computer Science"] == "navigation_item"
    assert found["Nothing of this is needed"] == found["Nor is any of that"] == "dropped_section"
    assert texts(page, SegmentOptions(sections=rules)) == [
        "Admissions Department",
        "Everybody who works here",
    ]


def test_without_rules_nothing_is_dropped_by_them() -> None:
    none = SectionRules((), 6, (), 250, (), (), ())
    page = "<ul><li>Prospective students</li><li>Apply now to our school</li></ul>"
    assert len(texts(page, SegmentOptions(sections=none))) == 2
