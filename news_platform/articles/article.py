"""The result of extracting an article, and whether its page is the one that was asked for.

Importing it loads no extractor.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from news_platform.datasets import versions
from news_platform.text.normalize import title_overlap
from news_platform.web.urls import canonical_url, url_host, url_path

# Version of the rules and weights; stored with every article, raised with every change of them.
EXTRACTOR_VERSION = versions.ARTICLE_EXTRACTOR


@dataclass(frozen=True, slots=True)
class Article:
    """One article; a value that the page does not state is empty.

    `clean_text` is the uncut body, `full_text` all visible text of the main column. `published_at`
    is the date that the page states, in UTC; `published_at_source` says where (json-ld, meta,
    microdata, time, url, visible). `out_links` are absolute, unique, to other hosts only.
    `confidence` is the F1 to expect of `clean_text`, 0 to 1. `text_source` is `page`,
    `json-ld` or `trafilatura`. `is_paywalled` is None if the page does not say.
    """

    clean_text: str = ""
    full_text: str = ""
    title: str = ""
    subtitle: str = ""
    authors: tuple[str, ...] = ()
    published_at: datetime | None = None
    section: str = ""
    tags: tuple[str, ...] = ()
    language: str = ""
    out_links: tuple[str, ...] = ()
    article_type: str = ""
    published_at_source: str = ""
    published_at_has_time: bool = False
    published_at_has_zone: bool = False
    modified_at: datetime | None = None
    image_url: str = ""
    canonical_link: str = ""
    is_paywalled: bool | None = None
    language_probability: float = 0.0
    text_source: str = ""
    confidence: float = 0.0
    extractor_version: str = EXTRACTOR_VERSION


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """The article of a page, and whether the page looks like that of an article."""

    article: Article
    looks_like_article: bool = False


WRONG_PAGE = "leads to a page that is not the article"
# Folders and files of pages that stand in for an article: consent, login, subscription, errors.
_WALL_PATH_NAMES = """
consent cookie-consent cookies cookiewall cookie-wall gdpr privacy-gate privacywall
login log-in signin sign-in logon anmelden anmeldung einloggen connexion identification
iniciar-sesion acceder accedi entrar logowanie zaloguj giris inloggen auth oauth sso account
register registration registrieren regwall subscribe subscription subscriptions abo abonnement
abonnieren abonnez-vous suscripcion suscribete abbonati assine prenumerata paywall premium-gate
captcha challenge cdn-cgi blocked geoblock unavailable error errors 404 not-found notfound
page-not-found
"""
_WALL_PATHS = frozenset(_WALL_PATH_NAMES.split())
_WALL_HOSTS = frozenset(("consent", "login", "accounts", "auth", "sso", "signin", "subscribe"))
_WALL_TITLE = re.compile(
    r"before you continue|bevor sie fortfahren|avant de continuer|antes de continuar"
    r"|prima di continuare|just a moment|attention required|one moment, please|access denied"
    r"|are you a (?:human|robot)|you have been blocked|verif\w+ (?:you are|your)|security check"
    r"|(?:enable|activate|need to enable) (?:javascript|cookies)|javascript (?:is )?(?:disabled|re)"
    r"|we (?:value|care about) your privacy|(?:cookie|privacy|consent) (?:consent|settings|notice)"
    r"|(?:log|sign) ?in(?: |$)|anmelden$|connexion$|iniciar sesi\u00f3n"
    r"|subscribe(?: now| to read)?$"
    r"|(?:error )?(?:40[0134]|410|429|50[0234])\b|(?:page |seite )?(?:not|nicht) (?:found|gefunden)"
    r"|page introuvable|p\u00e1gina no encontrada|p\u00e1gina n\u00e3o encontrada"
    r"|pagina non trovata"
    r"|nie znaleziono|\u043d\u0435 \u043d\u0430\u0439\u0434\u0435\u043d\u0430"
    r"|(?:service |temporarily )unavailable|bad gateway|internal server error",
    re.IGNORECASE,
)
# Longer titles are headlines, which may contain such words.
_MAX_WALL_TITLE = 60
# Titles of one article share at least this much, also after an edit.
_LEAST_OVERLAP = 0.2
# Titles that share more than this are hardly those of two articles.
_ENOUGH_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Why a page is not the article, or '', and the one sign that leaves doubt, or ''."""

    reason: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class PageAsked:
    """What is known of a page before it is read: the asked address and who else leads to it.

    `url` is '' where nobody asked for the page, as in a crawl, `title` the title by which it was
    announced, `other_title` that of another article that leads to the same address.
    """

    url: str = ""
    title: str = ""
    other_title: str = ""
    status: int | None = None


def is_error_status(status: int | None) -> bool:
    """Return whether a page of this HTTP status is not an article; None if it is not known."""
    return status not in (None, 200)


def judge_page(page: ExtractedPage, *, url: str, asked: PageAsked) -> PageVerdict:
    """Return whether the page at `url` is the article that was asked for.

    A status other than 200 decides; otherwise two signs do, and one leaves a doubt.
    """
    if is_error_status(asked.status):
        return PageVerdict(f"status {asked.status}")
    signs = list(_signs(page, url=url, asked=asked))
    if len(signs) > 1:
        return PageVerdict(WRONG_PAGE)
    return PageVerdict(doubt=signs[0] if signs else "")


def _signs(page: ExtractedPage, *, url: str, asked: PageAsked) -> Iterator[str]:
    article = page.article
    if _wall_words(url) - _wall_words(asked.url):
        yield "wall_address"
    if len(article.title) <= _MAX_WALL_TITLE and _WALL_TITLE.match(article.title):
        yield "wall_title"
    if not page.looks_like_article:
        yield "not_an_article"
    if asked.other_title and not titles_fit(asked.other_title, asked.title):
        yield "shared_address"
    if fits(article, url=asked.url, title=asked.title) is False:
        yield "other_title"


def fits(article: Article, *, url: str, title: str) -> bool | None:
    """Return whether the page states this title or address; None if it states neither."""
    if article.canonical_link and canonical_url(article.canonical_link) == canonical_url(url):
        return True
    if not article.title or not title:
        return None
    return titles_fit(article.title, title)


def titles_fit(left: str, right: str) -> bool:
    """Return whether two titles can be those of one article."""
    return title_overlap(left, right) >= _LEAST_OVERLAP


def titles_agree(left: str, right: str) -> bool:
    """Return whether two titles are most likely those of one article."""
    return title_overlap(left, right) > _ENOUGH_OVERLAP


def _wall_words(url: str) -> set[str]:
    """Return the folders of an address that stand for a wall; `/` stands for a home page."""
    if not url:
        return set()
    path = url_path(url)
    names = {part.partition(".")[0] for part in path.lower().split("/") if part}
    host = url_host(url).partition(".")[0]
    return (names & _WALL_PATHS) | ({host} & _WALL_HOSTS) | (set() if names else {"/"})
