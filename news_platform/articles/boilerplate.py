"""Patterns of class names and phrases that mark boilerplate; lists only, no decisions.

They are not specific to a site: content management systems share the class names, newsrooms the
phrases.
"""

import re

# Whole words of class and id attributes.
NEGATIVE_CLASS = re.compile(
    r"""(?:^|[\s_-])(
    comments?|kommentare?|disqus|related|recommend\w*|recirc\w*|newsletters?|sign-?up|subscri\w+
    |social\w*|share\w*|sharing|addthis|promo\w*|sidebar|breadcrumbs?|cookies?|consent|gdpr
    |ad|ads|advert\w*|adslot|sponsor\w*|popular|trending|most-?(?:read|popular|viewed)
    |read-?more|read-?also|also-?read|more-?(?:on|from|stories|news|articles)
    |by-?line\w*|bio|authors?|author-?(?:bio|box|info|card|name|list|block)
    |caption\w*|credits?|copyright|footer\w*|tags?|tag-?(?:list|cloud)|keywords|topics?|toolbar
    |outbrain|taboola|login|banner|modal|popup|pop-?over|tooltip|print-?only|sr-?only
    |visually-?hidden|screen-?reader\w*|skip-?link|pagination|pager|next-?(?:article|post)|prev\w*
    |post-?nav\w*|navigation|nav|menu|gallery|carousel|slider|player|playlist|video\w*|podcast\w*
    |audio|poll|quiz|rating|timestamp|dateline|date|published|pub-?date|meta|metadata
    |post-?meta|entry-?meta|disclaimer|correction|donat\w*|support-?us|feedback|survey|widget\w*
    |jp-relatedposts|infobox|info-?box|fact-?box|faktabox|factsheet|callout|teasers?|linkbox
    |link-?list|more-?links|kicker|eyebrow|hide|hidden|no-?print|d-none
    )(?=$|[\s_-])""",
    re.VERBOSE | re.IGNORECASE,
)
# Words so clear that they count even if the text under them is longer than a short article.
STRONG_WORDS = frozenset(("cookie", "cookies", "consent", "gdpr", "modal", "comments", "disqus"))
NEGATIVE_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "dialog"))
HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.IGNORECASE)

BODY_CLASS = re.compile(
    r"(?:article|story|post|entry|content|news|page|text)[_-]*(?:body|content|text|main|inner)"
    r"|articlebody|storytext|body-?(?:text|content|copy)|richtext|^article$|paragraph",
    re.IGNORECASE,
)
LEAD_CLASS = re.compile(
    r"(?:^|[\s_-])(?:lead|lede|intro\w*|stand-?first|sub-?title\w*|sub-?head\w*|summary|excerpt"
    r"|abstract|dek|deck|description|preamble|ingress|chapo\w*|sapo|vorspann|teaser|entradilla"
    r"|bajada|sumario|sottotitolo|subline|synopsis)(?=$|[\s_-])",
    re.IGNORECASE,
)

# The start of a line that points to other content.
POINTER_LINE = re.compile(
    r"^(?:(?:>>|→|►|▶|➡|[-–•])\s*)?(?:read (?:more|also|next)|see (?:more|also)|more\s*:"
    r"|also (?:on|read)|don.t miss|related|advertisement|click here|follow |sign up|subscribe|share"
    r"|lesen sie|lies auch|mehr (?:zu|themen|dazu|lesen)|auch interessant"
    r"|weitere (?:artikel|themen)|hier (?:finden|lesen) sie|lees ook|lire aussi|à lire"
    r"|leia (?:também|mais)|le[ae] también|te puede interesar|leggi anche"
    r"|czytaj (?:też|także|również)|читайте также|copyright|©)"
    r"|^(?:>>|→|►|▶|➡)",
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
