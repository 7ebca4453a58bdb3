"""The specification's examples and acceptance tests, word for word."""

import pytest

from news_platform.source_records.segment import segment_page
from news_platform_tests.source_records.pages import (
    DEPARTMENTS,
    FULL_PAGE,
    PROSE,
    URL,
    fates,
    texts,
)


def test_example_a_a_department_list_keeps_departments_in_order_with_their_section() -> None:
    records = segment_page(DEPARTMENTS, url=URL, institution="u1")
    assert [
        {
            "text": record.text,
            "provenance": {
                "institution": record.provenance.institution,
                "url": record.provenance.url,
                "section": record.provenance.section,
            },
        }
        for record in records
    ] == [
        {
            "text": "Computer Science",
            "provenance": {"institution": "u1", "url": URL, "section": "Departments"},
        },
        {
            "text": "Electrical & Computer Engineering",
            "provenance": {"institution": "u1", "url": URL, "section": "Departments"},
        },
    ]


def test_example_a_admissions_goes_by_section_heuristics_and_the_footer_as_boilerplate() -> None:
    found = fates(DEPARTMENTS)
    assert found["Admissions"] == "navigation_item"
    assert found["© 2025 University"] == "footer"


@pytest.mark.parametrize(
    "page",
    [
        "Facultad de Ingeniería – Admisiones",
        "<p>Facultad de Ingeniería – Admisiones</p>",
        f"<main><h1>Faculty</h1><p>{PROSE}</p><p>Facultad de Ingeniería – Admisiones</p></main>",
    ],
    ids=["as text", "alone on a page", "on an English page"],
)
def test_example_b_a_block_in_another_language_is_dropped(page: str) -> None:
    assert fates(page)["Facultad de Ingeniería – Admisiones"] == "language"


LIST = "<ul><li>Robotics and Vision Laboratory</li><li>Quantum Materials Laboratory</li></ul>"


@pytest.mark.parametrize("sidebar", ["div class='sidebar'", "div", "aside"])
def test_example_c_a_list_in_content_and_sidebar_is_kept_once_with_its_first_section(
    sidebar: str,
) -> None:
    tag = sidebar.split()[0]
    page = f"<h2>Laboratories</h2>{LIST}<{sidebar}><h2>Quick links to us</h2>{LIST}</{tag}>"
    records = segment_page(page, url=URL, institution="u1")
    assert [(record.text, record.provenance.section) for record in records] == [
        ("Robotics and Vision Laboratory", "Laboratories"),
        ("Quantum Materials Laboratory", "Laboratories"),
    ]


def test_of_a_page_with_menus_and_footers_only_content_is_left() -> None:
    assert texts(FULL_PAGE) == [
        PROSE,
        "Dean of Engineering | Monday to Friday",
        "Founded in the year",
        "1921, by royal charter",
    ]
