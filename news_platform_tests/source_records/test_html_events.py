"""The events of a page: texts, block elements and links."""

from news_platform.source_records.html_events import End, Event, LinkEdge, Start, parse_html


def events(html: str) -> list[str]:
    """Return the events below <body> in one word each."""
    return [_word(event) for event in parse_html(html)][2:-2]


def _word(event: Event) -> str:
    if isinstance(event, str):
        return event
    if isinstance(event, LinkEdge):
        return "[" if event.opens > 0 else "]"
    return f"/{event.tag}" if isinstance(event, End) else event.tag


def test_texts_and_what_parts_them_come_in_the_order_of_the_page() -> None:
    assert events("<div>a<p>b</p>c</div>") == ["div", "a", "p", "b", "/p", "c", "/div"]


def test_invisible_elements_are_dropped_with_their_content() -> None:
    html = "<p>a<svg><title>b</title><a><text>c</text></a></svg>d<script>'<p>e</p>'</script>f</p>"
    assert events(html) == ["p", "a", "d", "f", "/p"]


def test_an_invisible_element_that_never_ends_hides_the_rest() -> None:
    assert events("<p>a</p><svg><p>b</p>") == ["p", "a", "/p"]


def test_attributes_that_are_read_later_come_with_their_element() -> None:
    html = "<div class=site-nav></div><div role=main></div><ol start=3></ol><p class=lead id=x></p>"
    starts = [event for event in parse_html(html) if isinstance(event, Start)][2:]
    assert [(start.widget, dict(start.attributes)) for start in starts] == [
        ("navigation", {}),
        (None, {"role": "main"}),
        (None, {"start": "3"}),
        (None, {}),
    ]


def test_text_after_the_end_of_the_page_gives_events_as_a_browser_shows_it() -> None:
    events = parse_html("<html><body><p>a</p></body></html><p>b</p>")
    assert [event for event in events if isinstance(event, str)] == ["a", "b"]
