"""Articles in twelve languages, made by recombining sentences, and a scan that needs no index."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from news_platform.search.index import SearchableArticle
from news_platform.search.query import (
    AllOf,
    AnyOf,
    Condition,
    DayRange,
    Exact,
    NotOf,
    Phrase,
)
from news_platform.search.words import STEMMERS, stem, words

SENTENCES = {
    "en": "The old bridge isn't safe. The mayor opened a café. Rain closed the harbour road.",
    "de": "Die Brücke bleibt gesperrt. Der Bürgermeister grüßt Zürich. Straßen im Regen.",
    "fr": "Le maire a rouvert l'école. Été pluvieux à la plage. Un café près du pont.",
    "es": "El puente está cerrado. La lluvia inundó la mañana. El alcalde habló ayer.",
    "it": "Il ponte è chiuso. Perché piove in città? Il sindaco parlò ieri.",
    "pl": "Most jest zamknięty. Łódź i Kraków czekają. Żółty tramwaj jedzie.",
    "ru": "Мост закрыт. Ёлка и йод подорожали. Мэр открыл новую школу.",
    "el": "Η γέφυρα έκλεισε. Ο δήμαρχος στην Αθήνα. Βροχή και άνεμος.",
    "ar": "الجسر مغلق اليوم. فتح العمدة مدرسة جديدة. المطر في المدينة.",
    "zh": "大桥今天关闭。市长开放新学校。经济增长很快。",
    "ja": "橋は今日閉鎖された。市長が学校を開いた。東京の雨。",
    "th": "สะพานปิดวันนี้ นายกเทศมนตรีเปิดโรงเรียน ฝนตกในเมือง",
}
DOMAINS = ("a.example", "b.example", "news.example.org", "xn--fiq.example")
START = datetime(2025, 11, 1, tzinfo=UTC)


def made_articles(count: int, *, seed: int, days: int = 3) -> list[SearchableArticle]:
    """Return articles that share their words, so that queries find some of them and not all."""
    dice = random.Random(seed)
    return [_article(number, dice, days) for number in range(count)]


def _article(number: int, dice: random.Random, days: int) -> SearchableArticle:
    language = dice.choice(sorted(SENTENCES))
    sentences = SENTENCES[language].replace("。", "。 ").split(". ")
    at = START + timedelta(days=dice.randrange(days), seconds=dice.randrange(86_400))
    domain = dice.choice(DOMAINS)
    return SearchableArticle(
        url=f"https://{domain}/{number}",
        canonical_url=f"https://{domain}/{number}",
        url_hash=f"{number:064x}",
        domain=domain,
        language=language,
        day=at.date().isoformat(),
        source=dice.choice(("crawl", "feed")),
        at=at,
        title=dice.choice(sentences),
        text=" ".join(dice.choices(sentences, k=dice.randint(1, 6))),
        authors=dice.choice(((), ("Ada Writer",), ("Björn Åkesson", "Ada Brontë"))),
        section=dice.choice(("", "Sport", "World news")),
    )


def scan(articles: Iterable[SearchableArticle], condition: Condition) -> set[str]:
    """Return the hashes of the articles that match, found by reading all of them."""
    return {article.url_hash for article in articles if _matches(article, condition)}


def _matches(article: SearchableArticle, condition: Condition) -> bool:
    match condition:
        case Phrase():
            held = any(_holds(article, field, condition.words) for field in condition.fields)
            return held or (condition.with_forms and _has_form(article, condition.words[0]))
        case Exact():
            return bool(getattr(article, condition.field) == condition.value)
        case DayRange():
            return condition.first <= article.day <= condition.last
        case AllOf():
            return all(_matches(article, part) for part in condition.parts)
        case AnyOf():
            return any(_matches(article, part) for part in condition.parts)
        case NotOf():
            return not _matches(article, condition.part)


def _has_form(article: SearchableArticle, word: str) -> bool:
    """Return whether an article has the word in another form, by the rules of its language."""
    if article.language not in STEMMERS:
        return False
    held = (*_words_of(article.title), *_words_of(article.text))
    return stem(word, article.language) in {stem(one, article.language) for one in held}


def _holds(article: SearchableArticle, field: str, wanted: tuple[str, ...]) -> bool:
    value = "\n".join(article.authors) if field == "authors" else getattr(article, field)
    found, size = _words_of(value), len(wanted)
    return any(found[n : n + size] == wanted for n in range(len(found) - size + 1))


@cache
def _words_of(value: str) -> tuple[str, ...]:
    return tuple(words(value))


def made_query(articles: Sequence[SearchableArticle], dice: random.Random, depth: int = 2) -> str:
    """Return a query of words, phrases, fields and operators that stand in the articles."""
    kind = dice.randrange(8 if depth else 4)
    article = dice.choice(articles)
    text = article.text.split()
    match kind:
        case 0:
            return _quoted(dice.choice(text))
        case 1:
            plain = "".join(letter for letter in dice.choice(text) if letter.isalnum())
            return plain if words(plain) and plain not in ("AND", "OR", "NOT") else "bridges"
        case 2:
            start = dice.randrange(len(text))
            return _quoted(" ".join(text[start : start + dice.randint(2, 4)]))
        case 3:
            return dice.choice(
                (
                    f"domain:{article.domain}",
                    f"language:{article.language}",
                    f"day:{article.day}",
                    "authors:akesson",
                    'section:"world news"',
                    f"title:{_quoted(article.title)}",
                )
            )
        case 4 | 5:
            return " ".join(made_query(articles, dice, depth - 1) for _ in range(2))
        case 6:
            return "({} OR {})".format(*(made_query(articles, dice, depth - 1) for _ in range(2)))
        case _:
            return f"NOT ({made_query(articles, dice, depth - 1)})"


def _quoted(text: str) -> str:
    return f'"{text}"' if words(text) else '"bridge"'
