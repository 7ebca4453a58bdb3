"""Find consent dialogs that no name betrays: by their wording and their buttons."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from news_platform.source_records.html_events import BREAK, End, Event, Start
from news_platform.source_records.words import word_list

ACTIONS = frozenset(word_list("html", "consent_actions"))
# The sentence that asks for consent, which a button alone does not make. "Consent" alone is also
# what patients give.
_WORDING = re.compile(
    r"\bcookies?\b|personal data|your privacy|tracking technolog"
    r"|donn[ée]es personnelles|datenschutz|einwilligung|privacidad|dati personali|persoonsgegevens",
    re.IGNORECASE,
)
_SENTENCE_CHARS = 40
# Longer texts are pages about privacy, not dialogs.
_MAX_DIALOG_CHARS = 8_000
_MAX_BUTTONS = 8
# A wrapper may add its title and a close button.
_WRAPPER_CHARS = 80
_NOT_A_DIALOG = frozenset(("html", "body", "main", "h1"))


def mark_consent_dialogs(events: list[Event], buttons: Sequence[int]) -> bool:
    """Mark the dialogs around these buttons as consent dialogs; return whether any is new.

    `buttons` are the positions of texts that are among `ACTIONS`.
    """
    is_new = False
    for start in {_dialog(events, button) for button in buttons[:_MAX_BUTTONS]} - {None}:
        event = events[start] if start is not None else None
        if start is None or type(event) is not Start:
            continue
        # Most dialogs were known by their names: a second walk would find the same.
        if event.widget != "consent" or not event.is_certain:
            events[start] = replace(event, widget="consent", is_certain=True)
            is_new = True
    return is_new


def _dialog(events: Sequence[Event], button: int) -> int | None:
    """Return the start of the smallest element with the button and a sentence on consent."""
    best: int | None = None
    size = 0
    for start in _ancestors(events, button):
        event = events[start]
        if type(event) is not Start or event.tag in _NOT_A_DIALOG:
            break
        texts = _texts(events, start)
        if texts is None:
            break
        chars = sum(map(len, texts))
        if best is not None and chars > size + _WRAPPER_CHARS:
            break
        if best is not None or any(_is_wording(text) for text in texts):
            best, size = start, chars
    return best


def _is_wording(text: str) -> bool:
    return len(text) >= _SENTENCE_CHARS and _WORDING.search(text) is not None


def _ancestors(events: Sequence[Event], position: int) -> Iterator[int]:
    """Yield the starts of the block elements around a position, inner before outer."""
    closed = 0
    for index in range(position, -1, -1):
        event = events[index]
        if type(event) is End:
            closed += 1
        elif type(event) is Start:
            if closed:
                closed -= 1
            else:
                yield index


def _texts(events: Sequence[Event], start: int) -> list[str] | None:
    """Return the texts in an element, None if it is too large for a dialog or holds a title."""
    texts: list[str] = []
    chars, depth = 0, 0
    joined: list[str] = []
    for event in events[start:]:
        if type(event) is str:
            joined.append(event)
            chars += 0 if event == BREAK else len(event.strip())
        elif type(event) is Start or type(event) is End:
            texts.append(" ".join("".join(joined).split()))
            joined = []
            if type(event) is Start and event.tag in _NOT_A_DIALOG:
                return None
            depth += 1 if type(event) is Start else -1
            if not depth:
                return [text for text in texts if text]
        if chars > _MAX_DIALOG_CHARS:
            return None
    return None
