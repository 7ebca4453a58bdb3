"""Patterns of the phrases that mark boilerplate; newsrooms share them, none is of one site."""

import re

# The start of a line that points to other content, by language.
_POINTERS = (
    r"read (?:more|also|next)|(?:see|learn) more|see also|also (?:on|see|read)|more\s*:|more from"
    r"|don.t miss|related|advertisement|click here|follow |sign up|subscribe|share|keep reading"
    r"|you (?:might|may) (?:also )?(?:like|enjoy|be interested)|further reading|watch(?: now)?:"
    r"|recommended (?:for you|reading|articles|stories|by)|copyright|©",
    r"lesen sie|lies auch|auch (?:lesen|interessant|auf)\b|lesetipp|siehe auch|passend dazu"
    r"|mehr (?:zu|themen|dazu|lesen|aus|infos|informationen)|hier (?:finden|lesen) sie"
    r"|weitere (?:artikel|themen|beiträge|meldungen|nachrichten|informationen|infos)"
    r"|(?:zum )?weiterlesen|weiter zu|das\b.{0,20} könnte (?:sie|dich|euch)",
    r"le[ae] (?:también|además|más)|(?:te|le|les) (?:puede|podría) interesar|puedes? (?:ver|leer)\b"
    r"|(?:vea|mira|ver) también|más información|sigue leyendo|no te pierdas",
    r"leia (?:também|mais|ainda)|veja (?:também|mais)|saiba mais|confira também",
    r"lire (?:aussi|également)|à lire|voir aussi|pour aller plus loin|sur le même (?:sujet|thème)",
    r"leggi (?:anche|pure)|vedi anche|potrebbe interessarti|ti potrebbe interessare",
    r"czytaj (?:też|także|również|więcej)|dowiedz się więcej|zobacz (?:też|także|również|więcej)"
    r"|(?:przeczytaj|sprawdź) (?:też|także|również)",
    r"lees (?:ook|meer|verder)|bekijk ook|läs (?:även|också|mer)|l[eæ]s også|lue myös",
    r"читайте (?:также|ещё|еще)|смотрите также|подробнее|čtěte (?:také|více)|přečtěte si",
    r"相关(?:阅读|新闻|链接|报道)|相關(?:閱讀|新聞|報導)|延伸(?:阅读|閱讀)|推荐阅读|関連記事|あわせて読みたい",
)
POINTER_LINE = re.compile(
    rf"^(?:(?:>>|»|→|►|▶|➡|[-–•…]|\.\.\.)\s*)?(?:{'|'.join(_POINTERS)})|^(?:>>|→|►|▶|➡)",
    re.IGNORECASE,
)
# The end of a line that credits a picture.
CREDIT_LINE = re.compile(
    r"\((?:image|photo|picture|pic|foto|bild|credit)s?\b[^)]*\)$"
    r"|(?:^|[\s|.(])(?:foto|bild|photo|image|credit|picture)s?\s*(?:credit)?:\s*\S.{0,60}$"
    r"|©\s?\S.{0,50}$|\| getty images$",
    re.IGNORECASE,
)
# A line that contains only a date.
DATE_LINE = re.compile(
    r"^(?:(?:stand|published|publiziert|publicado|updated|aktualisiert|veröffentlicht|datum"
    r"|last updated|posted)\b\W*)?(?:(?:mon|tue|wed|thu|fri|sat|sun)\w*,?\s+)?"
    r"\d{1,4}[\s./-]*(?:\d{1,2}|[^\W\d]{3,9})[\s./,-]*\d{2,4}[\s,|–-]*(?:um|at)?\s*"
    r"(?:\d{1,2}[:.h]\d{2})?\s*(?:uhr|am|pm|gmt|utc)?$",
    re.IGNORECASE,
)
# Numbered or named figures: "Abbildung 4: ...", "Fig. 2: ...".
_FIGURE_LINE = re.compile(
    r"^(?:abb(?:ildung|\.)|fig(?:ure|\.)?|bild|foto)\s*\d*\s*:", re.IGNORECASE
)
# A site says that it earns by its links. Both must be there: articles are about commissions too.
_COMMISSION = re.compile(r"affiliate|commission|compensat|provision\b", re.IGNORECASE)
_OUR_LINKS = re.compile(
    r"(?=.*\b(?:we|us|our|wir|uns|may|bei den)\b)"
    r".*(?:\blinks?\b|purchas|click|\bbuy\b|our editors|partner|verlinkung|kauf)",
    re.IGNORECASE | re.DOTALL,
)
_JOIN = (
    r"\b(?:sign(?:ing)? up|subscri\w+|join|register|melde dich|melden sie sich|abonnier\w*"
    r"|suscr[ií]b\w*|inscri\w+|abonne\w*|iscriviti|zapisz|inscreva)\b"
)
_NEWSLETTER = re.compile(
    rf"{_JOIN}.{{0,80}}(?:newsletters?\b|mailing list|inbox|posteingang|boletín)"
    r"|(?:newsletters?|mailing list)\b.{0,60}"
    r"\b(?:sign up|subscribe|abonnier\w*|anmelden|suscr[ií]b\w*)",
    re.IGNORECASE,
)
_COOKIES = re.compile(
    r"(?:we|this (?:web)?site) uses? cookies|(?:verwende[nt]|nutz(?:en|t)) cookies"
    r"|cookies anfordern|korzystamy z (?:plików )?cookies|utiliza(?:mos)? cookies"
    r"|utilis(?:ons|e) des cookies|utilizziamo (?:i )?cookie",
    re.IGNORECASE,
)
_RIGHTS = re.compile(
    r"all rights reserved|alle rechte vorbehalten|todos los derechos reservados"
    r"|tous droits réservés|(?:may|must) not be (?:published, broadcast|reproduced)",
    re.IGNORECASE,
)
_NOTICES = ((_NEWSLETTER, 400), (_COOKIES, 600), (_RIGHTS, 300), (_FIGURE_LINE, 300))
_MAX_DISCLOSURE = 450


def is_notice(text: str) -> bool:
    """Return True for what a site says in its own cause: links it earns by, newsletter, cookies."""
    if any(len(text) < most and pattern.search(text) for pattern, most in _NOTICES):
        return True
    is_short = len(text) < _MAX_DISCLOSURE
    return is_short and bool(_COMMISSION.search(text) and _OUR_LINKS.search(text))
