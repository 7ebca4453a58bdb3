"""The bytes of an XML file in, where it stops being well-formed out."""

import contextlib
from dataclasses import dataclass

from lxml import etree


@dataclass(frozen=True, slots=True)
class XmlDamage:
    """How many errors a parser found in a file, and the first of them."""

    errors: int
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return one line for a person."""
        what = "an XML error" if self.errors == 1 else f"{self.errors} XML errors, the first"
        return f"{what} at line {self.line}, column {self.column}: {self.message}"


def xml_damage(body: bytes) -> XmlDamage | None:
    """Return what a tolerant parser had to repair or leave out, or None if nothing."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    # If not even a tolerant parser finds an element, its log says why.
    with contextlib.suppress(etree.XMLSyntaxError, ValueError):
        etree.fromstring(body, parser)
    found = list(parser.error_log)
    if not found:
        return None
    # The message quotes the file, which anyone may have written.
    message = " ".join(ascii(found[0].message)[1:-1].split())
    return XmlDamage(len(found), found[0].line, found[0].column, message)
