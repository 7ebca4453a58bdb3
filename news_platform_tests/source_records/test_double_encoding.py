"""Pages that were encoded twice are read as they were written."""

import pytest

from news_platform.source_records.segment import undo_double_encoding
from news_platform_tests.source_records.pages import texts

PAGE = (
    "<p>The dean’s office – “Décanat” – is open until nine, © 2025 by the faculty’s own press</p>"
)
TEXT = "The dean’s office – “Décanat” – is open until nine every day of the week"
TWICE = PAGE.encode().decode("latin-1")


@pytest.mark.parametrize("page", [TWICE, TWICE.encode()], ids=["text", "bytes"])
def test_a_page_that_was_encoded_twice_is_repaired(page: str | bytes) -> None:
    found = undo_double_encoding(page)
    assert found == (PAGE if isinstance(page, str) else PAGE.encode())
    wrong = f"<p>{TEXT}</p>".encode().decode("latin-1")
    assert texts(wrong) == texts(wrong.encode()) == [TEXT]


@pytest.mark.parametrize(
    "page",
    [
        PAGE,
        PAGE.encode(),
        "<p>Sociology in the caf\u00e9 of S\u00c3\u00a3o Paulo, 24 \u00b0C</p>",
        TWICE + "<p>naïve</p>",
        TWICE + "<p>€ 20 and 30 ¥</p>",
        PAGE.encode("windows-1252"),
        b"<p>plain text</p>",
    ],
    ids=["text", "bytes", "accents", "one letter once", "a euro sign", "legacy", "ascii"],
)
def test_any_other_page_is_left_alone(page: str | bytes) -> None:
    assert undo_double_encoding(page) == page
