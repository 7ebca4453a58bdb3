"""Length bounds, the whitelist, duplicates and their order."""

import pytest

from news_platform.errors import ConfigError
from news_platform.source_records.decisions import SeenTexts
from news_platform.source_records.options import SegmentOptions
from news_platform_tests.source_records.pages import FULL_PAGE, PROSE, cut, fates, texts


@pytest.mark.parametrize(
    ("size", "reason"),
    [(11, "too_short"), (12, None), (2000, None), (2001, "too_long")],
    ids=["below", "at least", "at most", "above"],
)
def test_the_bounds_are_twelve_and_two_thousand_characters(size: int, reason: str | None) -> None:
    text = ("Physics of the sea and the shore. " * 80)[:size].strip().ljust(size, ".")
    assert fates(f"<p>{text}</p>")[text] == reason


@pytest.mark.parametrize("pattern", ["^Law$", "Departments", "Depart.*ts"])
def test_the_whitelist_matches_sections_and_texts(pattern: str) -> None:
    page = "<h2>Departments</h2><ul><li>Law</li></ul>"
    assert texts(page) == []
    assert texts(page, SegmentOptions(whitelist=("nothing", pattern))) == ["Law"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"whitelist": ("(",)},
        {"headings": "sometimes"},
        {"tables": "never"},
        {"language": "english"},
        {"language": "EN"},
        {"min_chars": 3000},
        {"min_chars": -1},
        {"max_chars": 11},
        {"similarity": 5},
        {"similarity": 0},
        {"min_probability": 7},
        {"shingle_words": 0},
    ],
    ids=str,
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        SegmentOptions(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_short_parts_of_one_list_item_are_joined() -> None:
    person = "<li><div>{}</div><div>{}</div><div>{}</div></li>"
    page = (
        "<h2>People</h2><ul>"
        + person.format("Ada Byron", "Professor of Computing", "Room 101")
        + person.format("Bram Sollis, tide gauge keeper", "Harbour and pier", "Monday to Friday")
        + "<li>Law</li><li>Optics</li></ul>"
    )
    assert texts(page) == [
        "Ada Byron | Professor of Computing | Room 101",
        "Bram Sollis, tide gauge keeper",
        "Harbour and pier",
        "Monday to Friday",
    ]
    joined = [record for record in cut(page).records if "Ada Byron" in record.text]
    assert (joined[0].meta.kind, joined[0].meta.hints) == ("item", {"marker": "-"})


def test_the_items_of_a_nested_list_are_not_parts_of_the_outer_item() -> None:
    page = "<ul><li>Sciences of the sea<ul><li>Optics</li><li>Tides</li></ul></li></ul>"
    assert texts(page) == ["Sciences of the sea"]


def test_near_identical_blocks_collapse_to_the_first() -> None:
    many = " ".join(f"word{number}" for number in range(100))
    nearly = many.replace("word99", "last")
    other = many.replace("word5", "x").replace("word50", "y")
    assert texts(f"<p>{many}</p><p>{nearly}</p>", SegmentOptions(similarity=0.9)) == [many]
    assert texts(f"<p>{many}</p><p>{other}</p>") == [many, other]


def test_case_width_and_punctuation_do_not_tell_texts_apart() -> None:
    assert texts("<p>Applied Mathematics</p><p>APPLIED MATHEMATICS.</p>") == ["Applied Mathematics"]


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.95, 1.0])
def test_what_is_seen_before_agrees_with_comparing_all_pairs(similarity: float) -> None:
    from news_platform.text.normalize import jaccard, shingles

    base = PROSE.split()
    variants = [" ".join([*base[:cut], "other", *base[cut + 1 :]]) for cut in range(0, 40, 3)]
    seen = SeenTexts(similarity=similarity, shingle_words=3)
    first: list[frozenset[str]] = []
    for text in [PROSE, *variants, PROSE.upper()]:
        found = shingles(text, 3)
        expected = any(jaccard(found, other) >= similarity for other in first)
        assert (seen.similar(text) is not None) == expected
        if not expected:
            first.append(found)


def test_a_heading_does_not_make_the_item_of_its_name_a_repetition() -> None:
    page = "<h3>Computer Science</h3><ul><li>Computer Science</li></ul>"
    assert texts(page) == ["Computer Science"]


def test_the_numbers_of_every_dropped_block_are_told() -> None:
    page = FULL_PAGE.replace("</main>", f"<p>Law</p><p>{'x ' * 1500}</p><p>{PROSE}</p></main>")
    decisions = cut(page).decisions
    dropped = [d for d in decisions if d.reason not in (None, "attached")]
    assert len({d.reason for d in dropped}) > 7
    assert [d.block.text for d in dropped if not d.detail] == []
    details = {d.reason: d.detail for d in dropped}
    assert details["too_short"] == "3 characters, at least 12"
    assert details["too_long"] == "2999 characters, at most 2000"
    assert details["duplicate"].startswith("similarity 1.00, at least 0.95, to 'The faculty")
    assert details["footer"] == "never content"
    assert details["aside"].startswith("holds 0.0") and "at most 0.7" in details["aside"]
