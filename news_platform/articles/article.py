"""The result of extracting an article; whether its page is the one asked for, and its category.

Importing it loads no extractor. The section decides about the category if it is known, else the
tags, else the folders of the URL; the slug of a URL is a headline and names no section. Otherwise a
linear model over the words of the title and the lead decides. Its weights are learned from labelled
articles by `benchmarks/category.py`, as whole numbers, so that the same article gets the same
category on every machine.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Literal
from urllib.parse import unquote

from news_platform.datasets import versions
from news_platform.text.normalize import UNSPACED, title_overlap, words
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


Category = Literal["politics", "sports", "other"]

_SECTIONS: dict[Category, str] = {
    "politics": """
        politics political politik politica politique politiek polityka politika politicas
        politiques politico siyaset siyasi innenpolitik aussenpolitik weltpolitik bundespolitik
        landespolitik lokalpolitik parteien bundestag wahlen wahl election elections elecciones
        eleicoes wybory
        secim parliament congress senate westminster whitehouse capitol government gobierno governo
        regierung gouvernement europapolitik democracy uspolitics политика выборы سياسة السياسة
        سياسي 政治 時政 时政 정치 politiikka politikk valg πολιτικη
    """,
    "sports": """
        sports sport deportes deporte esportes esporte desporto spor sportowe sportnews football
        soccer fussball futbol futebol calcio pilkanozna voetbal fotboll bundesliga premierleague
        laliga championsleague nfl nba mlb nhl tennis tenis cricket rugby olympics olympia
        olimpiadas hockey eishockey icehockey baseball basketball baloncesto basketbol koszykowka
        siatkowka handball motorsport motorsports formel1 formula1 f1 cycling ciclismo radsport
        boxing boxeo ufc mma athletics leichtathletik wintersport skispringen volleyball спорт
        футбол хоккей رياضة الرياضة 体育 體育 スポーツ 스포츠 urheilu αθλητικα
    """,
    "other": """
        business wirtschaft economy economia economie ekonomi gospodarka biznes finance finanzen
        finanzas finanse finans money markets boerse borsa aktien mercados negocios economics stocks
        investing immobilien tech technology technik tecnologia technologie teknoloji technologia
        digital netzwelt gadgets computer science wissenschaft ciencia sciences bilim nauka culture
        kultur cultura kultura arts books buecher libros literatur film movies movie kino cine
        cinema music musik musica muzyka theater theatre tv television medien serien entertainment
        unterhaltung espectaculos entretenimiento rozrywka showbiz celebrity celebrities promis
        leute stars boulevard gente famosos royals bollywood hollywood plotek lifestyle yasam estilo
        fashion moda beauty food essen rezepte recipes gastronomia comida genuss travel reise reisen
        viajes turismo seyahat podroze health gesundheit salud saglik zdrowie sante wellness auto
        cars autos motoring automobile otomobil motoryzacja gaming spiele blaulicht polizei
        polizeimeldungen polizeibericht polizeiticker crime policiales sucesos policiaca polis
        weather wetter tiempo pogoda horoscope horoskop экономика культура наука технологии здоровье
        происшествия اقتصاد الاقتصاد ثقافة فن تكنولوجيا صحة علوم 科技 财经 財經 娱乐 文化 経済
        エンタメ 경제 문화
    """,
}
# Words of politics and sports in several languages; how many an article has are features, too.
_SIGNS: Mapping[str, str] = {
    "politics": """
        president minister senator senate congress parliament government election elections vote
        voters voted campaign democrats democratic republicans republican labour conservative
        conservatives party lawmakers legislation bill policy impeachment coalition opposition
        sanctions diplomat embassy mayor governor chancellor referendum ballot candidate candidates
        tory tories mps brexit trump biden prasident kanzler kanzlerin bundestag regierung wahl
        partei spd cdu csu fdp afd koalition bundesregierung abgeordnete landtag fraktion
        ministerprasident grunen bundeskanzlerin presidente ministro gobierno congreso senado
        diputados partido elecciones votos psoe vox podemos oposicion candidato ministra legislativo
        alcalde gouvernement ministre assemblee parti depute deputes senateurs elysee macron
        prezydent premier rzad sejm senat wybory partia posel poslowie pis opozycja kandydat
        marszalek cumhurbaskani bakan bakani meclis secim chp akp mhp milletvekili hukumet baskani
        الرئيس الحكومة البرلمان وزير الانتخابات حزب مجلس النواب президент правительство министр
        парламент выборы партия депутат госдума
    """,
    "sports": """
        match matches game games season team teams coach player players goal goals league cup
        tournament championship striker midfielder defender quarterback touchdown playoffs innings
        wicket scored score defeat injury transfer club stadium champion champions semifinal olympic
        medal race nba nfl nhl mlb fifa uefa ncaa wickets spiel trainer mannschaft tor tore liga
        bundesliga verein spieler sieg niederlage saison turnier meister torwart punkte partido
        equipo jugador jugadores gol goles entrenador temporada torneo campeon futbol estadio
        delantero joueur joueurs equipe entraineur but buts championnat mecz gola druzyna trener
        zawodnik pilkarz sezon turniej mac macta takim lig teknik direktor oyuncu sampiyon stadyum
        fenerbahce galatasaray besiktas مباراة فريق الدوري لاعب هدف مدرب النادي матч команда игрок
        тренер гол сезон чемпионат
    """,
}
_SIGN_COUNTS = (1, 2, 3, 4, 6, 8, 12)
_SIGN_SHARES = (5, 10, 20, 30, 50)  # per thousand words
# A sign says more than any one word.
_SIGN_WEIGHT = 2
# The lead shows what an article is about, so only the beginning is used.
_LEAD_CHARS = 2_000
# The beginning of a longer word stands for its forms.
_STEM = 5
_SHORT_WORD = 3
# A longer name is a headline in the path.
_MAX_FOLDER_WORDS = 3
_BORDER = re.compile(r"[/>|,»:•]")
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(f"[{UNSPACED}]")


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_CATEGORY_OF = {_fold(word): name for name, text in _SECTIONS.items() for word in text.split()}
_SIGN_WORDS = {name: frozenset(map(_fold, text.split())) for name, text in _SIGNS.items()}


def stated_category(*, url: str, section: str, tags: Iterable[str] = ()) -> Category | None:
    """Return the category that the section, the tags or the folders of the URL name; else None."""
    whole_tags = (tag for tag in map(_fold, tags) if tag.strip() in _CATEGORY_OF)
    for names in (_BORDER.split(section), whole_tags, _folders(url)):
        found = {_CATEGORY_OF[word] for name in names for word in _known_words(name)}
        # Beside politics or sports, another section says nothing: `politics/business`.
        if len(found) == 1:
            return found.pop()
    return None


def _known_words(name: str) -> Iterator[str]:
    folded = _fold(name).strip()
    if folded.replace("-", "").replace(" ", "") in _CATEGORY_OF:
        yield folded.replace("-", "").replace(" ", "")
    else:
        yield from (word for word in _WORD.findall(folded) if word in _CATEGORY_OF)


def _folders(url: str) -> Iterator[str]:
    """Yield the folders of the path without headlines, and the first label of the host."""
    for folder in unquote(url_path(url)).strip("/").split("/")[:-1]:
        if len(_WORD.findall(folder)) <= _MAX_FOLDER_WORDS:
            yield folder
    yield url_host(url).partition(".")[0]


def guess_category(
    *, url: str, section: str, tags: Iterable[str], title: str, text: str
) -> Category:
    """Return the stated category of an article, else the one that its words speak for."""
    stated = stated_category(url=url, section=section, tags=tags)
    return stated or load_category_model().category(category_words(title, text))


def category_words(title: str, text: str) -> frozenset[str]:
    """Return the features of an article: its words, their stems, and steps of how many signs."""
    found = words(f"{title}\n{text[:_LEAD_CHARS]}")
    telling = {word for word in found if len(word) >= _SHORT_WORD and not word.isdigit()}
    telling |= {word[:_STEM] + "*" for word in telling if len(word) > _STEM}
    # Scripts without spaces: every character is a word, and two of them mean something.
    telling |= {a + b for a, b in pairwise(found) if _WIDE.match(a) and _WIDE.match(b)}
    folded = [_fold(word) for word in found]
    for name, signs in _SIGN_WORDS.items():
        hits = [word for word in folded if word in signs]
        share = 1000 * len(hits) // max(len(folded), 1)
        telling |= {f"{name} {step}" for step in _SIGN_COUNTS if len(set(hits)) >= step}
        telling |= {f"{name} {step}‰" for step in _SIGN_SHARES if share >= step}
    return frozenset(telling)


def feature_weight(word: str) -> int:
    """Return how much a feature counts beside the others."""
    return _SIGN_WEIGHT if " " in word else 1


@dataclass(frozen=True, slots=True)
class CategoryModel:
    """What speaks for politics and for sports, in thousandths, by word; `bias` without words."""

    bias: tuple[int, int]
    weights: Mapping[str, tuple[int, int]]

    def category(self, found: Iterable[str]) -> Category:
        """Return the category that these features speak for."""
        known = [self.weights[word] for word in found if word in self.weights]
        # The sum of n chance words grows with the root of n.
        root = math.isqrt(100 * max(len(known), 1))
        politics = self.bias[0] + sum(weight for weight, _ in known) * 10 // root
        sports = self.bias[1] + sum(weight for _, weight in known) * 10 // root
        if max(politics, sports) <= 0:
            return "other"
        return "politics" if politics >= sports else "sports"


@cache
def load_category_model() -> CategoryModel:
    """Return the model of the package, read once."""
    written = files("news_platform.articles").joinpath("category_weights.json").read_text("utf-8")
    found = json.loads(written)
    politics, sports = found["bias"]
    return CategoryModel((politics, sports), found["weights"])
