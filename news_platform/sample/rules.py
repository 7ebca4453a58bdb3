"""The robots.txt of every sample site, with different policies for crawlers and AI bots."""

from news_platform.sample.responses import SiteResponse

_TEXT = "text/plain; charset=utf-8"

_MERIDIAN = """\
# Licensing: see the imprint. Training on our text is not covered by it.
User-agent: GPTBot
User-agent: ClaudeBot
User-agent: Google-Extended
User-agent: PerplexityBot
User-agent: Bytespider
Disallow: /

User-agent: *
Content-Signal: search=yes, ai-train=no
Disallow: /search
Disallow: /login

Sitemap: https://wire.meridian.example/sitemap-news.xml
"""

_CALDERPOST = """\
User-agent: *
Disallow: /search
Disallow: /premium/
Allow: /premium/about.html

User-agent: GPTBot
Disallow: /archive/
Disallow: /features/

Sitemap: https://www.calderpost.example/sitemap_index.xml
"""

_HARBOURHILL = """\
User-agent: *
Allow: /
Content-Usage: train-ai=n, search=y
Content-Usage: /press/ train-ai=y

User-agent: Google-Extended
Disallow: /
"""

_NORTHMOOR = """\
User-agent: *
Disallow: /*?print=
Disallow: /drafts/
Disallow: /*.pdf$
Crawl-delay: 0.2

User-agent: Amazonbot
Crawl-delay: 30

Sitemap: https://news.northmoor.example/sitemap.txt
"""

_FENWICK = """\
# We speak to readers, not to collections.
User-agent: CCBot
User-agent: GPTBot
User-agent: Google-Extended
User-agent: anthropic-ai
User-agent: ClaudeBot
User-agent: Applebot-Extended
User-agent: Meta-ExternalAgent
Disallow: /

User-agent: *
Disallow: /subscribers/
"""

_TIDEWATER = """\
User-agent: *
Crawl-delay: 1
Disallow: /live/

Sitemap: https://sport.tidewater.example/sitemap.xml
Sitemap: https://sport.tidewater.example/sitemap-news.xml
"""

_KUPFERTAL = """\
User-agent: *
Disallow: /suche
Disallow: /druck/

User-agent: GPTBot
Disallow: /

User-agent: CCBot
Allow: /

Sitemap: https://www.kupfertaler.example/sitemap_index.xml
"""

# Old editor, old habits: carriage returns, a Latin-1 comment, odd capitals.
_MUENSTERECK = (
    "# Für Suchmaschinen: bitte höflich bleiben\r\n"
    "USER-AGENT: *\r\ndisallow: /intern/\r\nDISALLOW: /cgi-bin/\r\n\r\n"
    "Sitemap: https://xn--mnsterecker-thb.example/sitemap.xml\r\n"
)

_VALBRUME = """\
User-agent: *
Disallow: /abonnes/

User-agent: GPTBot
User-agent: CCBot
Disallow: /abonnes/
Disallow: /archives/

Sitemap: /plan-du-site.xml
Sitemap: https://www.valbrume.example/sitemap.xml
"""

_ZARECHYE = """\
User-agent: Yandex
Disallow: /poisk
Crawl-delay: 2

User-agent: *
Disallow: /poisk

Sitemap: https://vestnik.zarechye.example/sitemap.xml.gz
"""

_LIMANI = """\
User-agent: *
Disallow:

User-agent: Bytespider
Disallow: /

Sitemap: https://foni.limani.example/no-longer-here.xml
"""

_AOMINE = """\
User-agent: *
Disallow: /kaiin/

User-agent: GPTBot
Allow: /

User-agent: CCBot
Allow: /

Sitemap: https://www.aomine.example/sitemap.xml
"""

_MARSA = """\
User-agent: *
Disallow: /admin/
Disallow: /search

User-agent: Google-Extended
User-agent: GPTBot
User-agent: OAI-SearchBot
Disallow: /

Sitemap: https://almarsa.example/sitemap_index.xml
"""

_TEXTS = {
    "meridian": _MERIDIAN.encode(),
    "calderpost": _CALDERPOST.encode(),
    "harbourhill": _HARBOURHILL.encode(),
    "northmoor": _NORTHMOOR.encode(),
    "fenwick": _FENWICK.encode(),
    "tidewater": b"\xef\xbb\xbf" + _TIDEWATER.encode(),
    "kupfertal": _KUPFERTAL.encode(),
    "muenstereck": _MUENSTERECK.encode("iso-8859-1"),
    "valbrume": _VALBRUME.encode(),
    "zarechye": _ZARECHYE.encode(),
    "limani": _LIMANI.encode(),
    "aomine": _AOMINE.encode(),
    "marsa": _MARSA.encode(),
}

# This site answers every URL, including robots.txt, with its front page.
_SOFT_ERROR = b"<!DOCTYPE html>\n<html><body><h1>El Faro de Almazul</h1></body></html>\n"


def usage_files(key: str) -> dict[str, SiteResponse]:
    """Return the files besides robots.txt in which an outlet states how it may be used."""
    return {
        path: SiteResponse(body, content_type=kind, etag=True)
        for path, (body, kind) in _USAGE_FILES.get(key, {}).items()
    }


_USAGE_FILES: dict[str, dict[str, tuple[bytes, str]]] = {
    "calderpost": {
        "/.well-known/tdmrep.json": (
            b'[{"location": "/press/", "tdm-reservation": 0},\n'
            b' {"location": "/", "tdm-reservation": 1}]\n',
            "application/json",
        ),
        "/llms.txt": (b"# Calder Post\n\n- [Imprint](/imprint): who we are\n", _TEXT),
    },
    "northmoor": {"/ai.txt": (b"# Spawning AI\nUser-Agent: *\nDisallow: *.jpg\n", _TEXT)},
}


def robots(key: str) -> SiteResponse:
    """Return the outlet's response to robots.txt: rules, an HTML page by mistake, or nothing."""
    if key in _TEXTS:
        return SiteResponse(_TEXTS[key], content_type=_TEXT, etag=True)
    if key == "almazul":
        return SiteResponse(_SOFT_ERROR)
    return SiteResponse(b"Not found\n", content_type=_TEXT, status=404)
