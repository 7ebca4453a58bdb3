"""The text of an RFC 9651 Dictionary in, its members out; any syntax error voids the whole text."""

import re

_OWS = r"[ \t]*"
_KEY = r"[a-z*][a-z0-9_.*-]*"
_TOKEN = r"[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_NUMBER = r"-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})"
_BYTES = r":[A-Za-z0-9+/=]*:"
_DATE = r"@-?[0-9]{1,15}"
_DISPLAY = r'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"'
_BARE = rf"(?:\?[01]|{_NUMBER}|{_STRING}|{_BYTES}|{_DATE}|{_DISPLAY}|{_TOKEN})"
_PARAMETERS = rf"(?:;[ ]*{_KEY}(?:={_BARE})?)*"
_INNER_LIST = rf"\([ ]*(?:{_BARE}{_PARAMETERS}(?:[ ]+{_BARE}{_PARAMETERS})*[ ]*)?\)"
_MEMBER = re.compile(
    rf"(?P<key>{_KEY})(?:=(?:(?P<token>{_TOKEN})|{_BARE}|{_INNER_LIST}))?{_PARAMETERS}"
)
_SEPARATOR = re.compile(rf"{_OWS},{_OWS}")


def parse_dictionary(text: str) -> dict[str, str | None] | None:
    """Return the members of a Dictionary, or None if the text is not one.

    A value is its token, or None if it is of another type. The last of two equal keys counts.
    """
    text = text.strip(" ")
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        if member is None:
            return None
        # RFC 9651: a repeated key keeps the value of its last occurrence.
        found[member["key"]] = member["token"]
        at = member.end()
        if at == len(text):
            return found
        separator = _SEPARATOR.match(text, at)
        if separator is None or separator.end() == len(text):
            return None  # no comma between two members, or a comma after the last
        at = separator.end()
    return found
