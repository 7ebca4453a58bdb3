"""The language of blocks, and what it was derived from."""

import pytest

from news_platform.datasets.source_records import Meta
from news_platform.source_records.languages import declared_code
from news_platform.source_records.options import SegmentOptions
from news_platform_tests.source_records.pages import PROSE, cut, fates

GERMAN = (
    "Die Fakultät vereint neun Institute in vier Gebäuden am Fluss und unterrichtet jedes Jahr "
    "mehr als viertausend Studierende in allen Wissenschaften, die man im Hafen und in der Stadt "
    "braucht."
)


def metas(html: str, options: SegmentOptions | None = None) -> dict[str, Meta]:
    return {record.text: record.meta for record in cut(html, options).records}


def test_a_long_block_is_judged_by_itself() -> None:
    meta = metas(f"<p>{PROSE}</p>")[PROSE]
    assert (meta.language, meta.language_source) == ("en", "block")
    assert meta.language_probability is not None and meta.language_probability >= 0.8


def test_a_short_block_takes_the_language_of_its_section() -> None:
    page = f"<h2>Law</h2><p>{PROSE}</p><p>Maritime Law</p>"
    assert metas(page)["Maritime Law"].language_source == "section"


def test_then_what_the_page_declares() -> None:
    meta = metas("<html lang='en-GB'><body><p>Maritime Law</p></body></html>")["Maritime Law"]
    assert (meta.language, meta.language_source, meta.language_probability) == (
        "en",
        "declared",
        None,
    )


def test_a_page_declared_in_another_language_is_believed() -> None:
    assert fates("<html lang='de'><p>Maritime Law</p></html>")["Maritime Law"] == "language"


def test_a_block_of_unknown_language_is_kept_and_marked_as_assumed() -> None:
    meta = metas("<p>Maritime Law</p>")["Maritime Law"]
    assert (meta.language, meta.language_source) == (None, "assumed")


def test_one_long_foreign_paragraph_does_not_make_the_page_foreign() -> None:
    short = "".join(f"<li>Laboratory of {name}</li>" for name in ("Optics", "Waves", "Sediment"))
    page = f"<html lang='en'><h2>Labs</h2><ul>{short}</ul><h2>Gäste</h2><p>{GERMAN}</p></html>"
    found = fates(page)
    assert found["Laboratory of Optics"] is None
    assert found[GERMAN] == "language"


def test_plain_ascii_on_a_greek_page_is_not_greek() -> None:
    greek = "Το κολλέγιο διδάσκει ναυτική τέχνη και επισκευή πλοίων σε όλους τους φοιτητές. " * 3
    page = f"<h2>Schools</h2><ul><li>School of Seamanship</li></ul><h2>Σχολές</h2><p>{greek}</p>"
    assert fates(page)["School of Seamanship"] is None


@pytest.mark.parametrize(
    ("declared", "code"),
    [("en", "en"), ("en-GB", "en"), ("EN_us", "en"), ("x-default", None), ("", None), (None, None)],
)
def test_a_declaration_is_its_first_two_letters(declared: str | None, code: str | None) -> None:
    assert declared_code(declared) == code


def test_the_number_of_detected_blocks_of_a_page_is_limited() -> None:
    items = "".join(f"<li>Xqzt vrlpk number{number} wtbbl</li>" for number in range(2000))
    assert len(cut(f"<ul>{items}</ul>").decisions) == 2000


FOREIGN = [
    "Facultad de Ingeniería – Admisiones",
    "Ciencias Sociales y Humanidades",
    "Departement des sciences humaines",
    "Fakultät für Maschinenbau und Verfahrenstechnik",
    "Technische Universität München",
    "Dipartimento di Scienze della Terra",
    "Faculdade de Engenharia Mecânica",
    "Wydział Fizyki i Astronomii",
    "Institutionen för fysik och astronomi",
    "Det Sundhedsvidenskabelige Fakultet",
    "Bienvenue sur le site de notre faculté",
]
ENGLISH = [
    "Electrical & Computer Engineering",
    "Some relevant past courses:",
    "Ecommerce revenue attribution",
    "Advanced Placement Macroeconomics",
    "Los Angeles County Museum of Art",
    "Rio de Janeiro Carnival Guide",
    "Las Vegas Convention Center Rooms",
    "Lorenzo Franceschi-Bicchierai, Senior Reporter",
    "A café’s guide to naïve baking – and résumés",
    "1,249.00 € 1,399.00 €",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_short_block_that_is_surely_foreign_is_dropped_from_an_english_page(text: str) -> None:
    page = f"<html lang='en'><h1>Faculty</h1><p>{PROSE}</p><ul><li>{text}</li></ul></html>"
    assert fates(page)[text] == "language"


@pytest.mark.parametrize("text", ENGLISH)
def test_a_short_english_block_stays_whatever_names_it_has(text: str) -> None:
    page = f"<html lang='en'><h1>Faculty</h1><p>{PROSE}</p><ul><li>{text}</li></ul></html>"
    found = fates(page.replace(" & ", " &amp; "))
    assert found[text] is None


def test_code_takes_the_language_around_it() -> None:
    code = "el.de(la); los.del(y, que); un = una.de(las); para(con, por, su);"
    page = f"<p>{PROSE}</p><pre>{code}</pre>"
    assert metas(page)[code].language_source in ("section", "page")


def test_an_english_section_survives_on_a_page_that_is_mostly_foreign() -> None:
    page = f"<h2>English</h2><p>{PROSE[:150]}</p><h2>Deutsch</h2><p>{GERMAN}</p><p>{GERMAN} Ja.</p>"
    assert list(metas(page)) == [PROSE[:150]]


SPANISH = """Facultad de Derecho;Facultad de Medicina;Ciencias Sociales;Bellas Artes;
Ingeniería Civil;Historia Antigua;Trabajo Social;Lenguas Modernas;Escuela de Arquitectura;
Biblioteca Central;Química Orgánica;Secretaría General;Enfermería;Relaciones Laborales"""


def listed(names: str) -> str:
    return f"<ul>{''.join(f'<li>{name.strip()}</li>' for name in names.split(';'))}</ul>"


@pytest.mark.parametrize("declared", ["", "<html lang='en'>", "<html lang='es'>"])
@pytest.mark.parametrize("around", ["", f"<p>{PROSE}</p>"], ids=["alone", "below English"])
def test_a_list_in_another_language_is_dropped_whole(declared: str, around: str) -> None:
    found = cut(f"{declared}{around}<h2>Departamentos</h2>{listed(SPANISH)}")
    items = [decision for decision in found.decisions if decision.block.kind == "item"]
    assert {decision.reason for decision in items} <= {"language", "too_short"}
    told = next(decision for decision in items if decision.block.text == "Ciencias Sociales")
    assert told.detail.startswith("es by the list, probability ")


@pytest.mark.parametrize(
    "names",
    [
        "Giulia Rossi;Marco Bianchi;Francesca Esposito;Alessandro Romano;Chiara Colombo",
        "Juan García López;María Fernández;José Rodríguez;Carmen Martínez Ruiz",
        "Jürgen Schneider;Katharina Fischer;Wolfgang Weber;Dieter Hoffmann",
        "Matti Virtanen;Liisa Korhonen;Jukka Nieminen;Päivi Mäkinen",
        "Frankfurt am Main;Mönchengladbach;Saarbrücken am Fluss;Aix-en-Provence",
    ],
    ids=["Italian", "Spanish", "German", "Finnish", "towns"],
)
@pytest.mark.parametrize("declared", ["", "<html lang='en'>"])
def test_names_are_kept_whatever_language_they_come_from(declared: str, names: str) -> None:
    page = f"{declared}<h1>People and places</h1><p>{PROSE}</p>{listed(names)}"
    found = cut(page)
    items = [decision for decision in found.decisions if decision.block.kind == "item"]
    assert {decision.reason for decision in items} == {None}


def test_each_list_of_a_page_in_three_languages_is_judged_by_itself() -> None:
    english = "School of Law;School of Medicine and Surgery;Social Sciences;Civil Engineering"
    french = "Sciences humaines;Lettres et langues;Génie civil et urbanisme;Faculté de droit"
    page = f"{listed(SPANISH)}<h2>English names</h2>{listed(english)}<h2>Noms</h2>{listed(french)}"
    assert list(metas(page)) == [
        "School of Law",
        "School of Medicine and Surgery",
        "Social Sciences",
        "Civil Engineering",
    ]


def test_a_language_that_is_dropped_tells_the_probability_of_the_target() -> None:
    names = ("Facultad de Derecho", "Escuela de Ingeniería", "Departamento de Biología")
    spanish = f"<ul>{''.join(f'<li>{name}</li>' for name in names)}</ul>"
    for html in (spanish, f"<p>{GERMAN}</p>"):
        dropped = [found for found in cut(html).decisions if found.reason == "language"]
        assert dropped
        assert all(", P(en) 0.0" in found.detail for found in dropped)
        assert all(
            (found.language.target_probability or 0) < 0.1 for found in dropped if found.language
        )
