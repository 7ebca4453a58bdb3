"""Terms: what articles about one event have in common in each language and script."""

import subprocess
import sys

import pytest

from news_platform.stories.meanings import read_meanings
from news_platform.stories.terms import DATE, NOTION, NUMBER, PLACE, iter_terms

# "Earthquake in Italy kills 12: near Rome, Germany and China send 150 rescuers, 3.5 million."
EARTHQUAKES = {
    "en": "Earthquake in Italy kills 12. China sent 150 on 3 March, 3.5 million euros.",
    "de": "Erdbeben in Italien, 12 Tote. China schickte am 3. März 150 Helfer, 3,5 Millionen Euro.",
    "fr": "Séisme en Italie, 12 morts. La Chine envoie 150 secouristes le 3 mars, 3,5 millions.",
    "es": "Terremoto en Italia, 12 muertos. China envió 150 personas el 3 de marzo, 3,5 millones.",
    "it": "Terremoto in Italia, 12 morti. La Cina ha inviato 150 uomini il 3 marzo, 3,5 milioni.",
    "pl": "Włochy: trzęsienie ziemi, 12 zabitych. Chiny wysłały 150 osób 3 marca, 3,5 miliona.",
    "tr": "İtalya'da deprem, 12 kişi öldü. Çin 3 Mart'ta 150 kişi gönderdi, 3,5 milyon avro.",
    "ar": "مقتل 12 في زلزال في إيطاليا. أرسلت الصين 150 شخصا في 3 مارس، 3.5 مليون يورو.",
    "ru": "Землетрясение в Италии, 12 погибших. Китай направил 150 человек 3 марта, 3,5 миллиона.",
    "zh": "意大利地震造成12人死亡。中国于3月3日派出150名救援人员，350万欧元。",
    "ja": "イタリアで地震、12人死亡。中国は3月3日に150人を派遣、350万ユーロ。",
    "el": "Σεισμός στην Ιταλία, 12 νεκροί. Η Κίνα έστειλε 150 στις 3 Μαρτίου, 3,5 εκατομμύρια.",
    "hi": "इटली में भूकंप, 12 की मौत। चीन ने 3 मार्च को 150 लोग भेजे।",
}
# Notions are a table of ten languages.
WITH_NOTIONS = ("en", "de", "fr", "es", "it", "pl", "tr", "ar", "ru", "zh")


def shared(text: str, language: str) -> set[str]:
    kinds = (NUMBER, PLACE, NOTION, DATE)
    return {term.text for term in iter_terms("", text, language) if term.kind in kinds}


@pytest.mark.parametrize("language", EARTHQUAKES)
def test_languages_have_numbers_places_and_dates_in_common(language: str) -> None:
    found = shared(EARTHQUAKES[language], language)
    assert {"#12", "#150", "=IT", "#03-03"} <= found
    if language != "hi":  # the transliteration of China has too few letters
        assert {"=CN", "#3500000"} <= found
    if language in WITH_NOTIONS:
        assert {"@earthquake", "@dead"} <= found


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("en", "The ambassador was summoned in Rome by Iranian officials", "=IR"),
        ("de", "Iranischer Botschafter einbestellt", "=IR"),
        ("de", "Die französische Regierung", "=FR"),
        ("en", "the US army, the U.S. army", "=US"),
        ("en", "They met in Rome", "=Rome"),
        ("zh", "特朗普周二表示", "@trump"),
        ("ru", "Дональд Трамп заявил", "@trump"),
        ("ar", "قال ترامب", "@trump"),
        ("hi", "रोम में इटली", "=IT"),
    ],
)
def test_names_are_found(language: str, text: str, name: str) -> None:
    assert name in shared(text, language)


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("en", "2,000 thousand", "#2000000"),
        ("de", "12 Milliarden", "#12000000000"),
        ("en", "12 billion", "#12000000000"),
        ("ru", "7 млн", "#7000000"),
        ("zh", "1.2亿", "#120000000"),
        ("tr", "25 BİN", "#25000"),
        ("en", "version 1.2.3 million", "#1.2.3"),
    ],
)
def test_amounts_are_one_number(language: str, text: str, number: str) -> None:
    assert number in shared(text, language)


@pytest.mark.parametrize("language", ["", "xx", "unknown", "en_XYZ", "../../etc"])
def test_a_language_that_nobody_knows_has_words_and_numbers(language: str) -> None:
    found = list(iter_terms("Title", "Some words of 2024 and 17 March", language))
    assert {"title", "words", "#2024"} <= {term.text for term in found}
    assert not {term.kind for term in found} & {PLACE, NOTION, DATE}


def test_what_a_language_names_does_not_depend_on_which_was_read_before() -> None:
    script = (
        "import sys\nfrom news_platform.stories.meanings import read_meanings\n"
        "names = sys.argv[1].split()\nfound = {one: read_meanings(one) for one in names}\n"
        "print(*(sorted(found[one].months.items()) for one in sorted(names)))"
    )
    names = ["ja", "ko", "zh", "es", "fi", "de", "sw", "ta"]
    answers = {
        subprocess.check_output([sys.executable, "-c", script, " ".join(order)])
        for order in (names, names[::-1])
    }
    assert len(answers) == 1
    assert read_meanings("es").months["marzo"] == 3
