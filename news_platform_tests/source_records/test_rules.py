"""Rule files and settings."""

import tomllib
from importlib.resources import files

import pytest

from news_platform.errors import ConfigError
from news_platform.source_records.consent_dialogs import ACTIONS
from news_platform.source_records.html_events import is_certain_name
from news_platform.source_records.options import SegmentOptions, with_rules


def test_a_rule_file_replaces_what_it_names() -> None:
    toml = 'language = "de"\nmax_chars = 99\n'
    toml += (
        '[sections]\nnavigation_items = ["dean"]\n[boilerplate]\nlead_chars = 10\nmain_share = 1'
    )
    options = with_rules(SegmentOptions(), toml)
    assert (options.language, options.max_chars, options.min_chars) == ("de", 99, 12)
    assert options.sections.navigation_items == ("dean",)
    assert options.sections.call_words == SegmentOptions().sections.call_words
    assert (options.boilerplate.lead_chars, options.boilerplate.main_share) == (10, 1)


@pytest.mark.parametrize(
    ("toml", "error"),
    [
        ("[sections", "not valid TOML"),
        ("[section]", "unknown rule 'section'"),
        ("sections = 3", "invalid rule 3 in the rule file: expected a table"),
        ("language = 'english'", "invalid language 'english'"),
        ("max_chars = 'many'", "expected an integer"),
        ("[sections]\nverbs = []", "unknown rule 'verbs'"),
        ("[sections]\ncall_words = 'six'", "expected an integer"),
        ("[sections]\ncall_verbs = [1]", "expected a list of strings"),
        ("[boilerplate]\nzone_share = 5", "invalid zone_share 5: expected 0 to 1"),
        ("[sections]\nnotice_openings = ['(']", "invalid regular expression"),
    ],
)
def test_a_wrong_rule_file_is_refused_by_name(toml: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        with_rules(SegmentOptions(), toml)


def test_no_word_of_a_list_has_blanks_around_it_or_is_cut() -> None:
    lists = files("news_platform.source_records").joinpath("words.toml").read_text("utf-8")
    for table in tomllib.loads(lists).values():
        for name, listed in table.items():
            phrases = listed if isinstance(listed, list) else ()
            assert [one for one in phrases if one != one.strip() or not one] == [], name
    assert "allow all" in ACTIONS and is_certain_name("footer-container")
    assert not is_certain_name("container")
