"""No unit of content is lost: names, addresses, phone numbers, hours, rows, questions, details."""

import random
from collections.abc import Callable, Sequence

import pytest

from news_platform.source_records.options import SegmentOptions
from news_platform_tests.source_records.pages import PROSE, cut, texts

SENTENCE = "Participants gave their informed consent before the study began, as the law requires. "
NAMED_SECTIONS = ("share-your-story", "feedback", "login", "cookies", "comments", "related", "menu")


def test_rows_of_a_long_table_are_split_and_repeat_the_column_names() -> None:
    rows = "".join(
        f"<tr><td>Department {n}</td><td>Building {n} by the old harbour</td></tr>"
        for n in range(90)
    )
    page = f"<p>{PROSE}</p><table><tr><th>Name</th><th>Place</th></tr>{rows}</table>"
    tables = [text for text in texts(page, SegmentOptions(tables="structure")) if "|" in text]
    assert len(tables) > 1
    assert all(text.startswith("| Name | Place |\n") and len(text) <= 2000 for text in tables)
    assert all(sum(f"| Department {n} |" in text for text in tables) == 1 for n in range(90))


def test_a_cell_over_several_rows_is_not_glued_to_its_neighbour() -> None:
    rows = "<tr><td rowspan=2>Faculty of Arts</td><td>Department of History</td></tr>"
    page = f"<table>{rows}<tr><td>Department of Philosophy</td></tr></table>"
    assert texts(page)[-1] == "Faculty of Arts | Department of Philosophy"


@pytest.mark.parametrize("name", NAMED_SECTIONS)
@pytest.mark.parametrize("attribute", ["id", "class"])
def test_a_name_does_not_drop_a_section_with_a_heading_and_prose(attribute: str, name: str) -> None:
    section = f'<section {attribute}="{name}"><h2>Our patients</h2><p>{SENTENCE * 3}</p></section>'
    page = f"<h1>The clinic</h1><p>{PROSE * 4}</p>{section}"
    assert any(SENTENCE.strip() in text for text in texts(page))


def test_informed_consent_is_no_consent_dialog() -> None:
    page = f"<div><h2>Clinical trials</h2><p>{SENTENCE * 2}</p><button>I understand</button></div>"
    assert any(SENTENCE.strip() in text for text in texts(page))


@pytest.mark.parametrize(
    "text",
    [
        "Email: ada@u1.edu",
        "Contact: Jane Doe, room 12",
        "Open Heart Surgery",
        "Open University of the Netherlands",
        "Centre for Privacy Policy and Law",
        "Copyright Licensing Office",
    ],
)
def test_contacts_and_names_are_no_calls_or_notices(text: str) -> None:
    assert text in texts(f"<p>{PROSE}</p><p>{text}</p>")


def test_names_of_chinese_departments_are_long_enough() -> None:
    page = "<ul><li>数学系</li><li>计算机科学系</li><li>法学院</li></ul>"
    assert texts(page, SegmentOptions(language="zh")) == ["数学系", "计算机科学系", "法学院"]


def test_lines_of_lists_and_addresses_stay_apart() -> None:
    names = "<p>School of Navigation<br>School of Shipbuilding<br>School of Marine Arts</p>"
    address = "<p>Harbour Office<br>12 Quay Street<br>Northmoor NM1 4AB</p>"
    assert texts(f"{names}{address}") == [
        "School of Navigation",
        "School of Shipbuilding",
        "School of Marine Arts",
        "Harbour Office\n12 Quay Street\nNorthmoor NM1 4AB",
    ]
    wrapped = "<p>The harbour office opens at nine<br>and closes when the last boat is in.</p>"
    assert texts(wrapped) == [
        "The harbour office opens at nine and closes when the last boat is in."
    ]


def test_the_button_of_an_accordion_is_the_heading_of_its_panel() -> None:
    panel = f'<button aria-expanded="false">Who may apply?</button><div><p>{PROSE}</p></div>'
    menu = '<button aria-expanded="false">Menu of the site</button><ul><li><a>Home</a></li></ul>'
    done = cut(f"<main>{menu}<h2>Questions</h2>{panel}</main>")
    assert [(r.provenance.section, r.text) for r in done.records] == [
        ("Questions > Who may apply?", PROSE)
    ]


def test_a_dialog_with_prose_is_content_unless_it_has_a_form() -> None:
    details, asks = "Ada Byron leads the group. ", "Tell us what you think of it. "
    dialogs = (
        f'<div role="dialog"><p>{details * 5}</p></div>'
        f'<div class="modal"><form><p>{asks * 5}</p><label>Name</label><input></form></div>'
    )
    found = " ".join(texts(f"<main><p>{PROSE * 3}</p></main>{dialogs}"))
    assert asks.strip() not in found
    found = " ".join(texts(f"<p>{PROSE * 3}</p>{dialogs}"))
    assert details.strip() in found and asks.strip() not in found


def test_short_fields_of_cards_join_their_card() -> None:
    dogs = (("Rex", "Male", "$20"), ("Fido", "Male", "$30"), ("Laika", "Female", "$90"))
    cards = "".join(
        f"<div><h3>{name}</h3><div>Sex: {sex}</div><div>{price}</div></div>"
        for name, sex, price in dogs
    )
    assert texts(f"<p>{PROSE}</p>{cards}")[1:] == [
        "Sex: Male | $20",
        "Sex: Male | $30",
        "Sex: Female | $90",
    ]
    alone = "".join(f"<div><h3>{name} of York</h3><p>{price}</p></div>" for name, _, price in dogs)
    assert texts(f"<p>{PROSE}</p>{alone}")[1:] == [
        "Rex of York | $20",
        "Fido of York | $30",
        "Laika of York | $90",
    ]


def test_a_heading_has_the_section_of_its_parents_and_a_title_in_the_header_is_one() -> None:
    options = SegmentOptions(headings="records")
    page = f"<h1>School of Arts</h1><h2>Law > Ethics</h2><p>{PROSE}</p>"
    done = cut(page, options)
    assert [record.provenance.section_path for record in done.records] == [
        (),
        ("School of Arts",),
        ("School of Arts", "Law > Ethics"),
    ]
    titled = cut(f"<header><h1>School of Law</h1></header><main><p>{PROSE}</p></main>")
    assert [record.provenance.section for record in titled.records] == ["School of Law"]


def test_hints_have_links_contacts_and_the_sections_of_duplicates() -> None:
    contact = '<p><a href="/ada">Ada Byron</a>, +44 20 7946 0000, <a href="mailto:ada@u1.edu">mail'
    hours = "<p>The library is open from 9:00 to 17:30 on weekdays.</p>"
    twice = f"<h2>Here</h2>{hours}<h2>There</h2>{hours}"
    first, second = cut(f"{contact}</a></p>{twice}").records
    assert dict(first.meta.hints) == {
        "link": "https://u1.edu/ada",
        "email": "ada@u1.edu",
        "phone": "+44 20 7946 0000",
    }
    assert second.meta.hints["hours"] == "9:00 to 17:30"
    assert second.meta.hints["also_in"] == ["There"]


Unit = tuple[str, Sequence[str]]


def _address(rng: random.Random, number: int) -> Unit:
    facts = (f"House {number} of Trade", f"{rng.randint(1, 99)} Quay Street", f"Northmoor {number}")
    return f"<p>{'<br>'.join(facts)}</p>", facts


def _table(rng: random.Random, number: int) -> Unit:
    facts = [f"Office {number}{letter}" for letter in "abcd"]
    rows = "".join(f"<tr><td>{fact}</td><td>Room {rng.randint(1, 99)}</td></tr>" for fact in facts)
    return f"<table><tr><th>Office</th><th>Room</th></tr>{rows}</table>", facts


def _hours(rng: random.Random, number: int) -> Unit:
    facts = [f"{day} {rng.randint(7, 10)}:00 - {number % 5 + 15}:30" for day in ("Mon", "Tue")]
    return "<ul>" + "".join(f"<li>{fact}</li>" for fact in facts) + "</ul>", facts


def _people(rng: random.Random, number: int) -> Unit:
    names = [f"Ada {letter}. Byron{number}" for letter in "XYZ"]
    phones = [f"+44 20 {rng.randint(1000, 9999)} {number:04}" for _ in names]
    cards = "".join(
        f"<div><h4>{name}</h4><p>Dean</p><p>{phone}</p></div>"
        for name, phone in zip(names, phones, strict=True)
    )
    return cards, (*names, *phones)


def _questions(rng: random.Random, number: int) -> Unit:
    question = f"How do I enrol in course {number}?"
    answer = f"Write to the office of course {number} before term {rng.randint(1, 3)} begins."
    return f'<button aria-controls="p">{question}</button><p>{answer}</p>', (question, answer)


def _linked(rng: random.Random, number: int) -> Unit:
    facts = [f"Department of Subject {number}{letter}" for letter in "abc"]
    rng.shuffle(facts)
    return "".join(f'<p><a href="/{fact}">{fact}</a></p>' for fact in facts), facts


# Names that notices and calls begin with, or contain.
OFFICES = (
    "Centre for Privacy Policy and Law", "Copyright Licensing Office", "Contact Lens Clinic",
    "Open Heart Surgery", "Institute of Login Security",
)  # fmt: skip
# How a page may set a person, an office, a street, a phone number and hours; most are short.
LAYOUTS = (
    "<ul><li>{}, {}, {}, {}, {}</li></ul>",
    "<ul><li><a href='/p'>{}</a> <span>{}</span><div>{}</div><div>{}</div><div>{}</div></li></ul>",
    "<table><tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr></table>",
    "<dl><dt>{}</dt><dd>{}</dd><dd>{}</dd><dd>{}</dd><dd>{}</dd></dl>",
    "<h3>{}</h3><address>{}<br>{}<br>{}<br>{}</address>",
    "<button aria-expanded=false>{}</button>"
    "<div><p>{}</p><p>{}</p><p>Call {} for an appointment.</p><p>{}</p></div>",
    "<div class='contact'><div>{}</div><div>{}</div><div>{}</div><div>{}</div><div>{}</div></div>",
    "<details><summary>{}</summary><p>{}</p><p>{}</p><p>{}</p><p>{}</p></details>",
)


def _contact(rng: random.Random, number: int) -> Unit:
    name = rng.choice(("Jane Doe", "Tom O'Neil", "Wei Zhang", "Fatima Al-Sayed"))
    phone = rng.choice((f"555 {number:04}", f"(555) 123-{number:04}", f"+44 1865 27{number:04}"))
    hours = rng.choice(("Sat 9-13", "Open 24 hours", "Mon–Fri 9:00–17:00", "Tue, Thu 10:00-12:30"))
    facts = (name, rng.choice(OFFICES), f"Room {number}, Wing C", phone, hours)
    return rng.choice(LAYOUTS).format(*facts), facts


UNITS: Sequence[Callable[[random.Random, int], Unit]] = (
    _address, _table, _hours, _people, _questions, _linked, _contact, _contact,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(200))
def test_no_fact_of_a_generated_institution_page_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    parts: list[str] = []
    facts: list[str] = []
    for number in range(rng.randint(2, 5)):
        html, found = rng.choice(UNITS)(rng, 10 * seed + number)
        named = rng.choice(("", f' id="{rng.choice(NAMED_SECTIONS)}"'))
        prose = f"<p>{PROSE}</p>" if named or rng.random() < 0.5 else ""
        parts.append(f"<section{named}><h2>Part {number}</h2>{prose}{html}</section>")
        facts += found
    menu = "<nav><ul><li><a>Study here with us</a></li><li><a>All news</a></li></ul></nav>"
    shell = rng.choice(("<main>{}</main>", "<div class=content>{}</div>", "{}"))
    page = f"<body>{menu}{shell.format('<h1>Institute</h1>' + ''.join(parts))}<footer>©</footer>"
    records = cut(page).records
    held = "\n".join(f"{record.provenance.section}\n{record.text}" for record in records)
    assert [fact for fact in facts if fact not in held] == []
