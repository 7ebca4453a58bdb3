"""Phrases that mark boilerplate; newsrooms share them, none is of one site.

All patterns are for texts in lower case: Python searches those several times as fast as it ignores
case. Where a cheap sign must be present, it is looked for first, since nearly all lines lack it.
"""

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
_POINTER_LINE = re.compile(
    rf"^(?:(?:>>|»|→|►|▶|➡|[-–•…]|\.\.\.)\s*)?(?:{'|'.join(_POINTERS)})|^(?:>>|→|►|▶|➡)",
)
# The end of a line that credits a picture.
_CREDIT_LINE = re.compile(
    r"\((?:image|photo|picture|pic|foto|bild|credit)s?\b[^)]*\)$"
    r"|(?:^|[\s|.(])(?:foto|bild|photo|image|credit|picture)s?\s*(?:credit)?:\s*\S.{0,60}$"
    r"|©\s?\S.{0,50}$|\| getty images$",
)
# A line that contains only a date.
_DATE_LINE = re.compile(
    r"^(?:(?:stand|published|publiziert|publicado|updated|aktualisiert|veröffentlicht|datum"
    r"|last updated|posted)\b\W*)?(?:(?:mon|tue|wed|thu|fri|sat|sun)\w*,?\s+)?"
    r"\d{1,4}[\s./-]*(?:\d{1,2}|[^\W\d]{3,9})[\s./,-]*\d{2,4}[\s,|–-]*(?:um|at)?\s*"
    r"(?:\d{1,2}[:.h]\d{2})?\s*(?:uhr|am|pm|gmt|utc)?$",
)
# Numbered or named figures: "Abbildung 4: ...", "Fig. 2: ...".
_FIGURE_LINE = re.compile(r"^(?:abb(?:ildung|\.)|fig(?:ure|\.)?|bild|foto)\s*\d*\s*:")
# A site says that it earns by its links. Both must be there: articles are about commissions too.
_COMMISSION = re.compile(r"affiliate|commission|compensat|provision\b")
_OUR_LINKS = re.compile(
    r"(?=.*\b(?:we|us|our|wir|uns|may|bei den)\b)"
    r".*(?:\blinks?\b|purchas|click|\bbuy\b|our editors|partner|verlinkung|kauf)",
    re.DOTALL,
)
_JOIN = (
    r"\b(?:sign(?:ing)? up|subscri\w+|join|register|melde dich|melden sie sich|abonnier\w*"
    r"|suscr[ií]b\w*|inscri\w+|abonne\w*|iscriviti|zapisz|inscreva)\b"
)
_NEWSLETTER = re.compile(
    rf"{_JOIN}.{{0,80}}(?:newsletters?\b|mailing list|inbox|posteingang|boletín)"
    r"|(?:newsletters?|mailing list)\b.{0,60}"
    r"\b(?:sign up|subscribe|abonnier\w*|anmelden|suscr[ií]b\w*)",
)
_COOKIES = re.compile(
    r"(?:we|this (?:web)?site) uses? cookies|(?:verwende[nt]|nutz(?:en|t)) cookies"
    r"|cookies anfordern|korzystamy z (?:plików )?cookies|utiliza(?:mos)? cookies"
    r"|utilis(?:ons|e) des cookies|utilizziamo (?:i )?cookie",
)
_RIGHTS = re.compile(
    r"all rights reserved|alle rechte vorbehalten|todos los derechos reservados"
    r"|tous droits réservés|(?:may|must) not be (?:published, broadcast|reproduced)",
)
_NOTICES = ((_NEWSLETTER, 400), (_COOKIES, 600), (_RIGHTS, 300), (_FIGURE_LINE, 300))
_NOTICE_SIGNS = (
    "newsletter", "mailing list", "inbox", "posteingang", "boletín", "cookie", "rights", "rechte",
    "derechos", "droits", "not be ", "affiliate", "commission", "compensat", "provision",
)  # fmt: skip
_FIGURES = ("abb", "fig", "bild", "foto")
_MAX_NOTICE = max(most for _, most in _NOTICES)
_MAX_DISCLOSURE = 450
_MAX_POINTER = 200
_MAX_CREDIT = 250
_MAX_DATE = 60


def is_pointer(lowered: str) -> bool:
    """Return True for a short line that points to other content."""
    return len(lowered) < _MAX_POINTER and _POINTER_LINE.match(lowered) is not None


def is_credit(lowered: str) -> bool:
    """Return True for a line that ends with the credit of a picture."""
    return (
        len(lowered) < _MAX_CREDIT
        and (":" in lowered or "©" in lowered or lowered.endswith((")", "| getty images")))
        and _CREDIT_LINE.search(lowered) is not None
    )


def is_date(lowered: str) -> bool:
    """Return True for a line that contains only a date."""
    return len(lowered) < _MAX_DATE and _DATE_LINE.match(lowered) is not None


def is_notice(lowered: str) -> bool:
    """Return True for what a site says in its own cause: links it earns by, newsletter, cookies."""
    if len(lowered) >= _MAX_NOTICE:
        return False
    if not (lowered.startswith(_FIGURES) or any(map(lowered.__contains__, _NOTICE_SIGNS))):
        return False
    if any(len(lowered) < most and pattern.search(lowered) for pattern, most in _NOTICES):
        return True
    is_short = len(lowered) < _MAX_DISCLOSURE
    return is_short and bool(_COMMISSION.search(lowered) and _OUR_LINKS.search(lowered))
