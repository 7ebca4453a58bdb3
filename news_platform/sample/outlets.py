"""The fictional outlets of the sample world, under `.example`, with their peculiarities."""

from dataclasses import dataclass, field

from news_platform.sample.story import Voice


@dataclass(frozen=True, slots=True)
class FeedHabit:
    """How an outlet offers its feed: `kind` is rss, atom, rdf or json.

    `tracked` links carry campaign parameters; every `undated_every`-th entry hides its date.
    """

    kind: str
    path: str
    entries: int = 15
    charset: str = "utf-8"
    etag: bool = True
    last_modified: bool = True
    tracked: bool = False
    undated_every: int = 0


@dataclass(frozen=True, slots=True)
class Outlet:
    """One fictional publisher.

    `link_style` is dated, numbered, query or native (letters of its own script in the path);
    `layout` names the page template; `metadata` is jsonld, graph, opengraph or none.
    """

    key: str
    name: str
    host: str
    language: str
    country: str
    articles: int
    feed: FeedHabit
    charset: str = "utf-8"
    layout: str = "classic"
    metadata: str = "jsonld"
    link_style: str = "dated"
    charset_in_header: bool = True
    crawled: bool = True
    aliases: tuple[str, ...] = ()
    utc_offset_hours: int = 0
    voice: Voice = field(default_factory=Voice)

    @property
    def origin(self) -> str:
        """Return the URL of the front page without its final slash."""
        return f"https://{self.host}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return every host name of this outlet, its main one first."""
        return (self.host, *self.aliases)


OUTLETS = (
    Outlet(
        key="meridian",
        name="Meridian Wire",
        host="wire.meridian.example",
        aliases=("meridian.example",),
        language="en",
        country="gb",
        articles=44,
        feed=FeedHabit("rss", "/rss.xml", entries=24, tracked=True),
        layout="modern",
        metadata="graph",
    ),
    Outlet(
        key="calderpost",
        name="The Calder Post",
        host="www.calderpost.example",
        aliases=("calderpost.example",),
        language="en",
        country="gb",
        articles=48,
        feed=FeedHabit("rss", "/feeds/news.xml", entries=18, tracked=True),
    ),
    Outlet(
        key="harbourhill",
        name="Harbour & Hill",
        host="www.harbourhill.co.example",
        aliases=("harbourhill.co.example", "co.example"),
        language="en",
        country="ie",
        articles=36,
        feed=FeedHabit("atom", "/atom.xml", charset="iso-8859-1", etag=False),
        charset="iso-8859-1",
        layout="plain",
        metadata="opengraph",
        link_style="query",
    ),
    Outlet(
        key="northmoor",
        name="Northmoor Herald",
        host="news.northmoor.example",
        aliases=("northmoor.example",),
        utc_offset_hours=-5,
        language="en",
        country="us",
        articles=34,
        feed=FeedHabit("rdf", "/index.rdf", last_modified=False),
        layout="modern",
        link_style="numbered",
    ),
    Outlet(
        key="fenwick",
        name="The Fenwick Ledger",
        host="fenwickledger.example",
        utc_offset_hours=-5,
        language="en",
        country="us",
        articles=30,
        feed=FeedHabit("json", "/feed.json", entries=12, undated_every=4),
        charset="windows-1252",
        layout="plain",
        metadata="none",
        crawled=False,
        voice=Voice(topics=("economy", "politics", "technology")),
    ),
    Outlet(
        key="tidewater",
        name="Tidewater Sport",
        host="sport.tidewater.example",
        aliases=("tidewater.example",),
        utc_offset_hours=11,
        language="en",
        country="au",
        articles=30,
        feed=FeedHabit("atom", "/feed/atom", entries=6),
        metadata="graph",
        voice=Voice(topics=("sports",), shortest=8, longest=12),
    ),
    Outlet(
        key="kupfertal",
        name="Kupfertaler Anzeiger",
        host="www.kupfertaler.example",
        aliases=("kupfertaler.example",),
        utc_offset_hours=1,
        language="de",
        country="de",
        articles=28,
        feed=FeedHabit("rss", "/rss/aktuell.xml", tracked=True),
        layout="modern",
    ),
    Outlet(
        key="muenstereck",
        name="Münsterecker Tageblatt",
        host="xn--mnsterecker-thb.example",
        utc_offset_hours=1,
        language="de",
        country="at",
        articles=18,
        feed=FeedHabit("atom", "/feed", charset="iso-8859-1"),
        charset="iso-8859-1",
        layout="plain",
        metadata="opengraph",
        charset_in_header=False,
    ),
    Outlet(
        key="valbrume",
        name="Le Courrier de Valbrume",
        host="www.valbrume.example",
        aliases=("valbrume.example",),
        utc_offset_hours=1,
        language="fr",
        country="fr",
        articles=28,
        feed=FeedHabit("rss", "/fil.xml"),
        charset="windows-1252",
    ),
    Outlet(
        key="almazul",
        name="El Faro de Almazul",
        host="elfaro.almazul.example",
        aliases=("almazul.example",),
        utc_offset_hours=1,
        language="es",
        country="es",
        articles=28,
        feed=FeedHabit("atom", "/portada.atom"),
        layout="modern",
        metadata="graph",
    ),
    Outlet(
        key="serraclara",
        name="Diário da Serra Clara",
        host="serraclara.example",
        utc_offset_hours=-3,
        language="pt",
        country="br",
        articles=22,
        feed=FeedHabit("json", "/feed.json"),
        link_style="numbered",
    ),
    Outlet(
        key="zarechye",
        name="Вестник Заречья",
        host="vestnik.zarechye.example",
        aliases=("zarechye.example",),
        utc_offset_hours=5,
        language="ru",
        country="kz",
        articles=28,
        feed=FeedHabit("rss", "/rss.xml", charset="windows-1251"),
        charset="windows-1251",
        link_style="native",
    ),
    Outlet(
        key="limani",
        name="Η Φωνή του Λιμανιού",
        host="foni.limani.example",
        aliases=("limani.example",),
        utc_offset_hours=2,
        language="el",
        country="gr",
        articles=22,
        feed=FeedHabit("rdf", "/rss.rdf"),
        charset="iso-8859-7",
        layout="plain",
        metadata="opengraph",
        link_style="numbered",
    ),
    Outlet(
        key="aomine",
        name="青峰新聞",
        host="www.aomine.example",
        aliases=("aomine.example",),
        utc_offset_hours=9,
        language="ja",
        country="jp",
        articles=22,
        feed=FeedHabit("rss", "/rss/top.xml"),
        charset="shift_jis",
        charset_in_header=False,
        link_style="numbered",
    ),
    Outlet(
        key="marsa",
        name="صحيفة المرسى",
        host="almarsa.example",
        utc_offset_hours=1,
        language="ar",
        country="ma",
        articles=22,
        feed=FeedHabit("rss", "/feed"),
        layout="modern",
        link_style="native",
    ),
)
