"""Find and remove the lines with which a paywall or a meter ends a text."""

import re

# Only short lines: a sentence of an article about subscriptions must stay.
_MAX_CHARACTERS = 220
_METER = re.compile(
    r"subscri\w+ to (?:continue|keep|read|unlock|access)"
    r"|(?:sign|log) ?(?:in|up)(?: or (?:subscribe|register))? to (?:continue|keep) reading"
    r"|(?:register|create (?:a|an|your) (?:free )?account) to (?:continue|keep) reading"
    r"|to (?:continue|keep) reading(?:,| this| the| please|:|$)"
    r"|(?:this|the) (?:article|story|content) is (?:only |exclusively )?(?:for|available to)"
    r" (?:paying |premium |registered )?(?:subscribers|members)"
    r"|already a (?:subscriber|member)\?"
    r"|you(?:'|\u2019)?(?:ve| have) (?:reached|read|used)\b.{0,40}\bfree (?:article|stor)"
    r"|you have \w+ free articles? (?:left|remaining)"
    r"|want to (?:read|keep reading|continue reading)\b.{0,20}\?\s*subscribe"
    r"|unlock (?:this|the full) (?:article|story)"
    r"|weiterlesen mit\b|jetzt (?:weiterlesen|abonnieren)|mit .{0,20}abo (?:weiter)?lesen"
    r"|dieser (?:artikel|inhalt|beitrag) ist (?:nur|exklusiv) f\u00fcr"
    r"|sie haben bereits ein abo|diesen artikel weiterlesen"
    r"|(?:la suite|cet article) est r\u00e9serv\u00e9e? aux abonn\u00e9s|pour lire la suite"
    r"|contenido exclusivo para suscriptores|suscr\u00edbete para (?:seguir|continuar|leer)"
    r"|abbonati per (?:continuare|leggere)|contenuto riservato agli abbonati"
    r"|assine para (?:continuar|ler)|conte\u00fado exclusivo para assinantes",
    re.IGNORECASE,
)


# Every alternative of the pattern contains one of these, and few lines do: the pattern is slow.
_SIGNS = (
    "subscri", "reading", "members", "member?", "free ", "unlock", "lesen", "ein abo", "abonn",
    "exklusiv", "nur f\u00fcr", "la suite", "suscr", "assin", "abbona",
)  # fmt: skip


def is_meter_line(line: str) -> bool:
    """Return whether a line asks the reader to subscribe or to sign in for the rest of a text."""
    if len(line) > _MAX_CHARACTERS:
        return False
    lowered = line.lower()
    return any(sign in lowered for sign in _SIGNS) and _METER.search(line) is not None


def without_meter_lines(text: str) -> tuple[str, bool]:
    """Return the text without such lines, and whether it had any."""
    lines = text.split("\n")
    kept = [line for line in lines if not is_meter_line(line)]
    if len(kept) == len(lines):
        return text, False
    return "\n".join(kept).strip(), True
