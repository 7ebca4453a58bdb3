"""The seed's open questions: headings and tables, each with the option that changes the answer."""

from news_platform.source_records.options import SegmentOptions
from news_platform_tests.source_records.pages import PROSE, cut, fates, texts

PAGE = f"<h1>Faculty of Engineering</h1><h2>Labs</h2><p>{PROSE}</p>"
TABLE = (
    "<h2>Staff of the school</h2><table><tr><th>Name</th><th>Room</th></tr>"
    "<tr><td>Ada Lovelace</td><td>Room 12</td></tr>"
    "<tr><td>Alan Turing</td><td>Room 14</td></tr></table>"
)


def test_by_default_headings_are_context_of_what_follows() -> None:
    assert texts(PAGE) == [PROSE]
    assert fates(PAGE)["Labs"] == fates(PAGE)["Faculty of Engineering"] == "attached"
    assert cut(PAGE).records[0].provenance.section == "Faculty of Engineering > Labs"


def test_an_option_makes_headings_records_of_their_own() -> None:
    assert texts(PAGE, SegmentOptions(headings="records")) == ["Faculty of Engineering", PROSE]


def test_a_heading_with_nothing_below_it_is_a_record() -> None:
    page = f"<h2>School of Navigation</h2><h2>School of Port Law</h2><p>{PROSE}</p>"
    assert texts(page) == ["School of Navigation", PROSE]


def test_a_heading_whose_text_was_dropped_on_purpose_goes_with_it() -> None:
    page = f"<p>{PROSE}</p><h2>Repeated for good measure</h2><p>{PROSE}</p>"
    assert texts(page) == [PROSE]


def test_by_default_a_table_is_one_record_a_row_with_its_columns_as_hints() -> None:
    records = cut(TABLE).records
    assert [record.text for record in records] == [
        "Ada Lovelace | Room 12",
        "Alan Turing | Room 14",
    ]
    assert {record.meta.hints["columns"] for record in records} == {"Name | Room"}


def test_an_option_keeps_the_table_whole() -> None:
    (record,) = cut(TABLE, SegmentOptions(tables="structure")).records
    assert record.text.splitlines() == [
        "| Name | Room |",
        "| Ada Lovelace | Room 12 |",
        "| Alan Turing | Room 14 |",
    ]
    assert record.meta.kind == "table"
