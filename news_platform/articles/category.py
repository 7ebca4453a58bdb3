"""The category."""

import re
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

Category = Literal["politics", "sports", "other"]

# The lead shows what an article is about, so only the beginning is used.
_LEAD_CHARS = 1_500
_ENOUGH_WORDS = 3
_WORD = re.compile(r"[^\W\d_]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


_LABELS: dict[Category, frozenset[str]] = {
    "politics": _words(
        "politics political politik politica política politique politiek polityka elections "
        "election wahl congress senate parliament government westminster"
    ),
    "sports": _words(
        "sports sport deportes esportes football soccer fussball futbol nfl nba mlb nhl tennis "
        "cricket golf rugby olympics hockey baseball basketball motorsport cycling ufc"
    ),
}
_WORDS: dict[Category, frozenset[str]] = {
    "politics": _words(
        "president minister senator senate congress parliament government election elections vote "
        "voters voted campaign democrats democratic republicans republican labour conservative "
        "party lawmakers legislation bill policy impeachment coalition opposition sanctions "
        "diplomat embassy mayor governor chancellor referendum ballot candidate candidates "
        "präsident kanzler bundestag regierung wahl minister partei"
    ),
    "sports": _words(
        "match game games season team teams coach player players goal goals league cup tournament "
        "championship striker midfielder defender quarterback touchdown playoffs innings wicket "
        "scored score win defeat injury transfer club fans stadium champion champions final "
        "semifinal olympic medal race spiel trainer mannschaft tor liga"
    ),
}


def _folders(url: str) -> str:
    """Return the path without the slug of the article, whose words are those of a headline."""
    folders, _, last = urlsplit(url).path.rstrip("/").rpartition("/")
    return f"{folders} {last}" if last.isalpha() else folders


def guess_category(
    *, url: str, section: str, tags: Iterable[str], title: str, text: str
) -> Category:
    """Return the topic that the section, the tags or the folders of the URL name first.

    If each of them names none or several, the words of the text decide.
    """
    for labels in (section, " ".join(tags), _folders(url)):
        words = _words(labels)
        named: list[Category] = [topic for topic, signs in _LABELS.items() if words & signs]
        if len(named) == 1:
            return named[0]
    words = _words(f"{title} {text[:_LEAD_CHARS]}")
    counts = sorted(((len(words & signs), topic) for topic, signs in _WORDS.items()), reverse=True)
    (most, topic), (second, _) = counts[0], counts[1]
    return topic if most >= _ENOUGH_WORDS and most > second else "other"
