"""Settings are typed, and a wrong one is a clear line."""

import pytest

from news_platform.composition.corpus_options import corpus_options
from news_platform.errors import ConfigError
from news_platform.resources import collect_options
from news_platform.settings import load_settings, setting_infos


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("Off", False), ("0", False)]
)
def test_a_switch_takes_the_usual_words(text: str, value: bool) -> None:
    assert load_settings({"NEWS_PLATFORM_SAMPLE": text}).sample is value


def test_numbers_and_sections_are_parsed() -> None:
    settings = load_settings({"NEWS_PLATFORM_BUCKETS": "64", "NEWS_PLATFORM_FETCH_TIMEOUT": "2.5"})
    assert settings.domain_store.buckets == 64
    assert settings.web.total_timeout_seconds == 2.5


def test_a_list_of_domains_is_split_and_spelled_as_they_are_stored() -> None:
    names = ("NEWS_PLATFORM_CCNEWS_HOSTS", "NEWS_PLATFORM_CORPUS_DOMAINS")
    settings = load_settings(dict.fromkeys(names, "a.example., B.example ,Bücher.DE,"))
    expected = {"a.example", "b.example", "xn--bcher-kva.de"}
    assert collect_options(settings.ccnews).hosts == expected
    assert corpus_options(settings.corpus).domains == expected


def test_languages_are_read_in_capitals_too() -> None:
    names = ("CCNEWS_LANGUAGES", "CORPUS_LANGUAGES", "EXPORT_LANGUAGES", "FEED_LANGUAGES")
    settings = load_settings({f"NEWS_PLATFORM_{name}": "EN, De" for name in names})
    found = (settings.ccnews.languages, settings.corpus.languages, settings.rss.languages)
    assert {*found, settings.corpus.export_languages} == {("en", "de")}


def test_one_variable_sets_the_workers_of_every_feature() -> None:
    settings = load_settings({"NEWS_PLATFORM_WORKERS": "7"})
    features = (settings.ccnews, settings.corpus, settings.rss, settings.source_records)
    assert [one.workers for one in features] == [7, 7, 7, 7]


def test_an_empty_variable_counts_as_unset() -> None:
    assert load_settings({"NEWS_PLATFORM_ROOT": ""}).root == "data"


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("NEWS_PLATFORM_BUCKETS", "many", "int"),
        ("NEWS_PLATFORM_BUCKETS", "1.5", "int"),
        ("NEWS_PLATFORM_FETCH_TIMEOUT", "soon", "float"),
        ("NEWS_PLATFORM_SAMPLE", "perhaps", "bool"),
    ],
)
def test_a_value_of_the_wrong_type_names_the_variable(name: str, text: str, wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({name: text})
    assert str(caught.value) == f"{name}={text!r} is not of type {wanted}"


def test_an_unknown_name_is_refused_with_the_closest_known_one() -> None:
    with pytest.raises(ConfigError, match="did you mean NEWS_PLATFORM_BUCKETS"):
        load_settings({"NEWS_PLATFORM_BUCKTES": "64"})


def test_foreign_variables_are_nobodys_business() -> None:
    foreign = {"PATH": "/bin", "EDITOR": "ed", "storage": "{", "cluster": "c1", "root": "/"}
    assert load_settings(foreign) == load_settings({})


def test_secrets_do_not_show_in_the_text_of_settings() -> None:
    settings = load_settings(
        {
            "NEWS_PLATFORM_LEDGER_URL": "postgresql+psycopg2://u:planted@h/d",
            "NEWS_PLATFORM_S3_SECRET_KEY": "planted",
        }
    )
    assert "planted" not in f"{settings!r} {settings} {settings.storage}"


def test_every_setting_has_a_text_and_there_are_not_too_many() -> None:
    infos = setting_infos()
    assert all(info.help for info in infos)
    assert len(infos) <= 95
