"""Boilerplate by structure and density."""

import pytest

from news_platform_tests.source_records.pages import PROSE, fates, texts


@pytest.mark.parametrize(
    ("wrapper", "reason"),
    [
        ("<nav>{}</nav>", "navigation"),
        ("<header>{}</header>", "header"),
        ("<footer>{}</footer>", "footer"),
        ("<aside>{}</aside>", "aside"),
        ("<dialog open>{}</dialog>", "dialog"),
        ("<form>{}</form>", "control"),
        ("<div role='navigation'>{}</div>", "navigation"),
        ("<div role='banner'>{}</div>", "header"),
        ("<div role='alertdialog'>{}</div>", "dialog"),
        ("<div class='breadcrumbs'>{}</div>", "navigation"),
        ("<div id='siteMenu'>{}</div>", "navigation"),
        ("<div class='cookie_notice'>{}</div>", "consent"),
        ("<div class='login-box'>{}</div>", "account"),
        ("<div class='social share'>{}</div>", "share"),
        ("<section class='related-posts'>{}</section>", "related"),
        ("<p class='sr-only'>{}</p>", "screen_reader"),
    ],
    ids=lambda value: value.replace("{}", ""),
)
def test_a_zone_or_widget_goes_and_the_content_stays(wrapper: str, reason: str) -> None:
    block = "Some words that nobody needs to read"
    page = f"<h1>Title</h1><div><p>{PROSE}</p></div>{wrapper.format(block)}"
    found = fates(page)
    assert found[block] == reason
    assert found[PROSE] is None


@pytest.mark.parametrize("word", ["navy-blue", "sharepoint", "menuet", "content", "accountancy"])
def test_a_class_that_only_looks_like_a_widget_is_content(word: str) -> None:
    assert PROSE in texts(f"<div class='{word}'><p>{PROSE}</p></div>")


@pytest.mark.parametrize(
    "page",
    [
        f"<header><h1>Title</h1><p>{PROSE}</p></header>",
        f"<div class='has-sidebar menu-open'><p>{PROSE}</p></div>",
        f"<form><p>{PROSE}</p></form>",
    ],
    ids=["header", "class of the whole page", "form around the page"],
)
def test_an_element_with_nearly_all_text_of_a_page_is_not_a_widget(page: str) -> None:
    assert PROSE in texts(page)


def test_the_header_of_an_article_and_the_button_of_an_accordion_are_content() -> None:
    page = (
        f"<article><header><p>{PROSE}</p></header>"
        "<h2><button>What does it cost to study?</button></h2><p>It costs nothing at all.</p>"
        "</article>"
    )
    assert texts(page) == [PROSE, "It costs nothing at all."]
    assert fates(page)["What does it cost to study?"] == "attached"


def test_what_is_outside_a_main_that_holds_the_text_goes() -> None:
    page = f"<p>Some strip of news above the page</p><main><p>{PROSE}</p></main>"
    assert fates(page)["Some strip of news above the page"] == "outside_main"


def test_a_main_with_next_to_nothing_in_it_is_not_believed() -> None:
    assert PROSE in texts(f"<main><p>Only a teaser here</p></main><div><p>{PROSE}</p></div>")


def test_short_texts_above_the_title_are_furniture_and_long_ones_are_not() -> None:
    page = (
        f"<p>{PROSE}</p><p>Open until nine tonight</p><p><a>Our sponsors of the season</a></p>"
        "<h1>Departments</h1><p>Physics and Optics</p>"
    )
    assert fates(page)["Open until nine tonight"] == "above_title"
    assert fates(page)["Our sponsors of the season"] == "above_title"
    assert texts(page) == [PROSE, "Physics and Optics"]


@pytest.mark.parametrize(
    ("lead", "reason"),
    [
        ("<p>Faculty of Everything</p>", None),
        ("<p>Faculty of Everything</p><p>Open until nine tonight</p>", "above_title"),
        ("<p><a>Faculty of Everything</a></p>", "above_title"),
        ("<div role='region'><p>Faculty of Everything</p></div>", "above_title"),
    ],
    ids=["directly above", "further above", "a link", "in another element"],
)
def test_the_line_directly_above_the_title_belongs_to_it(lead: str, reason: str | None) -> None:
    page = f"{lead}<h1>Departments</h1><p>{PROSE}</p>"
    assert fates(page)["Faculty of Everything"] == reason


def test_a_heading_of_nothing_but_links_leads_elsewhere() -> None:
    row = "<a>All the news</a> | <a>Articles and reviews</a> | <a>Archive of feeds</a>"
    page = f"<p>{PROSE}</p><h3>{row}</h3><h3><a>Marine Physics</a></h3><p>{PROSE[40:]}</p>"
    found = fates(page)
    assert found["All the news | Articles and reviews | Archive of feeds"] == "link_dense"
    assert found["Marine Physics"] == "attached"


def test_a_form_around_a_filtered_list_is_content_and_a_small_form_is_not() -> None:
    rows = "".join(f"<div><h3>Unit {n}</h3><p>{PROSE[:40]} {n}</p></div>" for n in range(6))
    outside = f"<p>{PROSE}</p>"
    assert len(texts(f"{outside}<form><label>Filter by name</label>{rows}</form>")) == 7
    assert texts(f"{outside}<form><p>Send us a few words of yours</p></form>") == [PROSE]


def test_a_paragraph_of_nothing_but_links_leads_elsewhere() -> None:
    page = (
        f"<p>{PROSE}</p><p><a href='/'>Programme overview</a></p>"
        "<p><a>First part</a> | <a>Second part</a> | <a>Third part</a></p>"
    )
    found = fates(page)
    assert found["Programme overview"] == "link_dense"
    assert found["First part | Second part | Third part"] == "link_dense"


def test_a_list_of_linked_departments_is_content() -> None:
    items = "".join(
        f"<li><a href='/{name}'>{name}</a></li>" for name in ("Marine Physics", "Law and Ports")
    )
    assert texts(f"<h2>Departments</h2><ul>{items}</ul>") == ["Marine Physics", "Law and Ports"]


ADDRESS = (
    "Northmoor University, 12 Harbour Road, Port Calder PC1 4XY, telephone 0123 456789, open from "
    "Monday to Friday between nine and five, closed on public holidays and in the first week of May"
)
NAMES = ["Marine Biology", "Maritime Law", "Naval Medicine", "Coastal Engineering"]


def linked(tag: str) -> str:
    return "".join(f"<{tag}><a href='/{name}'>{name}</a></{tag}>" for name in NAMES)


@pytest.mark.parametrize("tag", ["li", "p", "div", "dd", "td"])
@pytest.mark.parametrize(
    "furniture",
    [
        f"<footer>{ADDRESS}</footer>",
        f"<div role='contentinfo'>{ADDRESS}</div>",
        f"<div id='footer'><p>{ADDRESS}</p></div>",
        f"<section><footer><p>{ADDRESS}</p></footer></section>",
    ],
    ids=["footer", "contentinfo", "id", "footer of a section"],
)
def test_a_page_of_links_does_not_keep_its_footer(furniture: str, tag: str) -> None:
    page = f"<h2>Departments</h2><div>{linked(tag)}</div>{furniture}"
    assert texts(page) == NAMES


DIALOG = (
    "<h2>We value your privacy</h2><p>We and our 842 partners store and access information on your "
    "device, such as unique identifiers and browsing data, to show personalised content and to "
    "measure how it is used. You may change your mind at any time in the settings.</p>"
    "<p>Strictly necessary storage</p><button>Accept all</button><button>Reject all</button>"
)


@pytest.mark.parametrize(
    "wrapper",
    [
        "<div id='onetrust-consent-sdk'>{}</div>",
        "<div id='CybotCookiebotDialog'>{}</div>",
        "<div id='didomi-host' class='didomi-host'>{}</div>",
        "<div id='usercentrics-root'>{}</div>",
        "<usercentrics-root>{}</usercentrics-root>",
        "<div id='truste-consent-track'>{}</div>",
        "<div class='qc-cmp2-container'>{}</div>",
        "<div id='sp_message_container_1234'>{}</div>",
        "<div class='cookie-banner'>{}</div>",
        "<section aria-label='Cookie consent'>{}</section>",
        "<div role='dialog' aria-label='Privacy preferences'>{}</div>",
    ],
)
@pytest.mark.parametrize("place", ["in", "after"])
def test_a_consent_dialog_is_never_content(wrapper: str, place: str) -> None:
    dialog = wrapper.format(DIALOG)
    inner, after = (dialog, "") if place == "in" else ("", dialog)
    page = f"<main><h1>Departments</h1><ul>{linked('li')}</ul>{inner}</main>{after}"
    assert texts(page) == NAMES
    assert fates(page)["Strictly necessary storage"] == "consent"


def test_a_script_that_marks_the_whole_page_does_not_make_it_a_dialog() -> None:
    page = f"<body class='didomi-popup-open cookie-banner'><main><p>{PROSE}</p></main></body>"
    assert texts(page) == [PROSE]
    page = f"<body><div class='cookie-banner'><main><p>{PROSE}</p></main></div></body>"
    assert texts(page) == [PROSE]


@pytest.mark.parametrize(
    "wrapper", ["<div class='x1'><div>{}</div></div>", "<section>{}</section>"]
)
def test_a_dialog_without_a_name_is_found_by_its_wording_and_buttons(wrapper: str) -> None:
    dialog = wrapper.format(DIALOG.replace("information on", "cookies on"))
    page = f"<body><h1>Departments</h1><ul>{linked('li')}</ul>{dialog}</body>"
    assert texts(page) == NAMES
    assert fates(page)["Strictly necessary storage"] == "consent"


def test_a_page_about_cookies_is_content() -> None:
    text = f"How this university uses cookies, and what for. {PROSE}"
    page = (
        f"<body><h1>Cookies</h1><p>{text}</p><p>Choose below.</p><button>Accept all</button></body>"
    )
    assert text in texts(page)
