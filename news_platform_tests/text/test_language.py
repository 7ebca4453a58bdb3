"""The language of sentences we wrote ourselves, and of texts that have none."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.text.language import (
    COMMON_LANGUAGES,
    UNKNOWN,
    Language,
    detect,
    rank_languages,
)

SENTENCES = {
    "en": "The council voted on Tuesday to keep the old bridge open for another year.",
    "de": "Der Stadtrat beschloss am Dienstag, die alte Brücke ein weiteres Jahr offen zu halten.",
    "ru": "Городской совет решил во вторник оставить старый мост открытым ещё на один год.",
    "el": "Το δημοτικό συμβούλιο αποφάσισε την Τρίτη να κρατήσει ανοιχτή την παλιά γέφυρα.",
    "zh": "市议会星期二决定，在新的桥梁建成之前，旧桥将继续开放一年，居民们对这个决定表示欢迎。",
    "ja": "市議会は火曜日、古い橋をもう一年開けておくことを決めました。",
    "ar": "قرر مجلس المدينة يوم الثلاثاء إبقاء الجسر القديم مفتوحا لمدة عام آخر.",
}


@pytest.mark.parametrize(("code", "sentence"), SENTENCES.items(), ids=SENTENCES.keys())
def test_a_sentence_is_found_to_be_in_its_language(code: str, sentence: str) -> None:
    found = detect(sentence)
    assert found.code == code
    assert found.probability >= 0.7


@pytest.mark.parametrize("text", ["", " \n", "2024-05-01 12:30", "!?… —", "\U0001f600"])
def test_without_letters_the_language_is_unknown(text: str) -> None:
    assert detect(text) == Language(UNKNOWN, 0.0)


def test_the_beginning_of_a_long_text_decides() -> None:
    assert detect(SENTENCES["de"] * 100 + SENTENCES["en"] * 10_000) == detect(SENTENCES["de"] * 100)


@settings(max_examples=15)
@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    assert 0.0 <= detect(text).probability <= 1.001


def test_real_articles_are_surely_in_some_language(bench_data: Path) -> None:
    truth = json.loads((bench_data / "articles" / "benchmark" / "ground-truth.json").read_bytes())
    found = [
        detect(page["articleBody"]) for page in truth.values() if len(page["articleBody"]) > 500
    ]
    assert sum(language.probability >= 0.8 for language in found) >= 0.97 * len(found)


def test_among_common_languages_the_detector_is_sure() -> None:
    text = "Ciencias Sociales Bellas Artes Derecho Civil Historia Antigua Ciencias Naturales"
    assert detect(text).probability < 0.8
    assert detect(text, COMMON_LANGUAGES) == rank_languages(text, COMMON_LANGUAGES)[0]
    assert detect(text, COMMON_LANGUAGES).code == "es"
    assert detect(text, COMMON_LANGUAGES).probability > 0.9


def test_a_restriction_ignores_codes_that_the_detector_does_not_know() -> None:
    assert detect("The bridge stays open.", ("en", "qq")) == Language("en", 1.0)
    assert detect("The bridge stays open.", ("qq",)) == Language(UNKNOWN, 0.0)
