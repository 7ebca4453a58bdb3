"""Formulas: parse one into a tree of functions and compute its value.

Supported are the operators of Sheets, references and ranges (also of other tabs), and the functions
in `_FUNCTIONS`. As in Sheets, a formula that cannot be parsed is `#ERROR!`, an unknown function or
name is `#NAME?`, a wrong number of arguments `#N/A`. Not supported are arrays, named ranges and all
other functions; they too are `#NAME?` or `#ERROR!`. A result has no format, except that of the one
cell it refers to.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from news_platform_tests.emulators.sheets import a1
from news_platform_tests.emulators.sheets.cells import (
    ErrorValue,
    Formula,
    Value,
    display,
    typed,
)

Block = list[list[Value]]
Lookup = Callable[[a1.Range], Block]
"""Return the computed values of a range; raise FormulaError if there is no such range."""
Node = Callable[[Lookup], "Value | Block"]

_TAB = r"(?:'(?:[^']|'')+'|[^\W\d]\w*)"
_CORNER = r"\$?[A-Za-z]{1,3}\$?\d+"
_COLUMN = r"\$?[A-Za-z]{1,3}"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>"(?:[^"]|"")*")
    | (?P<range>(?:{_TAB}!)?(?:{_CORNER}(?::{_CORNER})?|{_COLUMN}:{_COLUMN}))(?![\w(!])
    | (?P<broken>\#REF!)
    | (?P<function>[A-Za-z][\w.]*)\s*\(
    | (?P<name>[^\W\d]\w*)
    | (?P<sign><>|<=|>=|[-+*/^&=<>(),;%])
    )""",
    re.VERBOSE,
)


class FormulaError(Exception):
    """A formula results in an error value, named by its code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Unparsable(ValueError):
    """A text is not a formula."""


def compute(formula: Formula, lookup: Lookup) -> Value:
    """Return the value of a formula; errors are values too."""
    try:
        return _scalar(_parsed(formula)(lookup))
    except FormulaError as error:
        return ErrorValue(error.code)
    except (_Unparsable, RecursionError):
        return ErrorValue("#ERROR!")
    except (OverflowError, ArithmeticError):
        return ErrorValue("#NUM!")


def rewritten(formula: Formula, change: Callable[[str, str], str]) -> Formula:
    """Replace each range of a formula; `change` gets its tab with `!`, or '', and its cells."""

    def replaced(token: re.Match[str]) -> str:
        if token.lastgroup != "range":
            return token[0]
        title, mark, cells = token["range"].rpartition("!")
        blanks = token[0].removesuffix(token["range"])
        return f"{blanks}{change(f'{title}{mark}', cells)}"

    return Formula(_TOKEN.sub(replaced, formula))


@lru_cache(maxsize=1000)
def _parsed(formula: str) -> Node:
    parser = _Parser(_tokens(formula[1:]))
    node = parser.comparison()
    if parser.tokens:
        raise _Unparsable(formula)
    return node


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return the kinds and texts of all tokens, the last one first."""
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise _Unparsable(text)
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found[::-1]


class _Parser:
    """Recursive descent; each method parses one level of precedence, the weakest first."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def comparison(self) -> Node:
        return self._left_to_right(("=", "<>", "<", ">", "<=", ">="), self._text)

    def _text(self) -> Node:
        return self._left_to_right(("&",), self._sum)

    def _sum(self) -> Node:
        return self._left_to_right(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._left_to_right(("*", "/"), self._power)

    def _power(self) -> Node:
        return self._left_to_right(("^",), self._signed)

    def _left_to_right(self, signs: tuple[str, ...], operand: Callable[[], Node]) -> Node:
        node = operand()
        while self._next_is(*signs):
            node = _binary(self.tokens.pop()[1], node, operand())
        return node

    def _signed(self) -> Node:
        if not self._next_is("+", "-"):
            return self._percent()
        sign, operand = self.tokens.pop()[1], self._signed()
        return operand if sign == "+" else lambda cells: -_number(operand(cells))

    def _percent(self) -> Node:
        node = self._operand()
        while self._next_is("%"):
            self.tokens.pop()
            node = _binary("/", node, lambda _: 100.0)
        return node

    def _operand(self) -> Node:
        if not self.tokens:
            raise _Unparsable
        kind, text = self.tokens.pop()
        if kind == "sign" and text == "(":
            node = self.comparison()
            self._expect(")")
            return node
        if kind == "function":
            return _call(text.upper(), self._arguments())
        return _leaf(kind, text)

    def _arguments(self) -> list[Node]:
        if self._next_is(")"):
            self.tokens.pop()
            return []
        found = [self.comparison()]
        while self._next_is(",", ";"):
            self.tokens.pop()
            found.append(self.comparison())
        self._expect(")")
        return found

    def _next_is(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[-1][0] == "sign" and self.tokens[-1][1] in signs

    def _expect(self, sign: str) -> None:
        if not self._next_is(sign):
            raise _Unparsable
        self.tokens.pop()


def _leaf(kind: str, text: str) -> Node:
    if kind == "number":
        return lambda _: float(text)
    if kind == "text":
        return lambda _: text[1:-1].replace('""', '"')
    if kind == "range":
        area = _area(text)
        return lambda cells: cells(area)
    if kind == "name" and text.upper() in ("TRUE", "FALSE"):
        return lambda _: text.upper() == "TRUE"
    if kind in ("name", "broken"):
        return _raising("#NAME?" if kind == "name" else "#REF!")
    raise _Unparsable(text)


def _area(text: str) -> a1.Range:
    title, mark, cells = text.rpartition("!")
    return a1.parse(f"{title}{mark}{cells.replace('$', '').upper()}")


def _raising(code: str) -> Node:
    def fail(_: Lookup) -> Value:
        raise FormulaError(code)

    return fail


def _binary(sign: str, left: Node, right: Node) -> Node:
    def result(cells: Lookup) -> Value:
        first, second = _scalar(left(cells)), _scalar(right(cells))
        if sign == "&":
            return display(first) + display(second)
        if sign in _COMPARISONS:
            return _COMPARISONS[sign](_order(first), _order(second))
        return _arithmetic(sign, _number(first), _number(second))

    return result


_COMPARISONS: dict[str, Callable[[tuple[int, float, str], tuple[int, float, str]], bool]] = {
    "=": lambda first, second: first == second,
    "<>": lambda first, second: first != second,
    "<": lambda first, second: first < second,
    ">": lambda first, second: first > second,
    "<=": lambda first, second: first <= second,
    ">=": lambda first, second: first >= second,
}


def _arithmetic(sign: str, first: float, second: float) -> float:
    if sign == "/" and second == 0:
        raise FormulaError("#DIV/0!")
    if sign == "^":
        power = first**second
        if isinstance(power, complex):
            raise FormulaError("#NUM!")
        return float(power)
    return {"+": first + second, "-": first - second, "*": first * second}.get(
        sign, first / second if second else 0.0
    )


def _scalar(found: Value | Block) -> Value:
    """Return one value; a range of several cells is none."""
    if isinstance(found, list):
        if len(found) != 1 or len(found[0]) != 1:
            raise FormulaError("#VALUE!")
        found = found[0][0]
    if isinstance(found, ErrorValue):
        raise FormulaError(found)
    return found


def _number(found: Value | Block) -> float:
    value = _scalar(found)
    if isinstance(value, str):
        value = typed(value) if value else None
        if isinstance(value, str):
            raise FormulaError("#VALUE!")
    return float(value or 0)


def order(value: Value) -> tuple[int, float, str]:
    """Return a key that sorts as Sheets does: numbers, texts in any case, booleans."""
    if isinstance(value, bool):
        return 2, float(value), ""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value).casefold()


def _order(value: Value) -> tuple[int, float, str]:
    return order(0 if value is None else value)


def _values(arguments: Sequence[Value | Block]) -> list[Value]:
    found: list[Value] = []
    for given in arguments:
        found += [cell for row in given for cell in row] if isinstance(given, list) else [given]
    for value in found:
        if isinstance(value, ErrorValue):
            raise FormulaError(value)
    return found


def _numbers(arguments: Sequence[Value | Block]) -> list[float]:
    """Return the numbers; texts and booleans count only where they are written in the formula."""
    found = []
    for given in arguments:
        if not isinstance(given, list):
            found.append(_number(given))
            continue
        found += [
            float(value)
            for value in _values([given])
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
    return found


def _average(given: Sequence[Value | Block]) -> float:
    numbers = _numbers(given)
    if not numbers:
        raise FormulaError("#DIV/0!")
    return sum(numbers) / len(numbers)


def _hyperlink(given: Sequence[Value | Block]) -> Value:
    """Return the label; values never contain the address."""
    return _scalar(given[-1])


def _round(given: Sequence[Value | Block]) -> float:
    number, places = _number(given[0]), int(_number(given[1])) if len(given) > 1 else 0
    # Sheets rounds halves away from zero, Python to the even digit.
    scaled = abs(number) * 10**places + 0.5
    return float(int(scaled) / 10**places) * (-1 if number < 0 else 1)


def _truths(given: Sequence[Value | Block]) -> list[bool]:
    return [bool(_number(value)) for value in _values(given) if value is not None]


def _text(given: Sequence[Value | Block]) -> str:
    return display(_scalar(given[0]))


_Function = Callable[[Sequence["Value | Block"]], "Value | Block"]
_ANY = 255
_FUNCTIONS: dict[str, tuple[int, int, _Function]] = {
    "SUM": (1, _ANY, lambda given: float(sum(_numbers(given)))),
    "AVERAGE": (1, _ANY, _average),
    "MIN": (1, _ANY, lambda given: min(_numbers(given), default=0.0)),
    "MAX": (1, _ANY, lambda given: max(_numbers(given), default=0.0)),
    "COUNT": (1, _ANY, lambda given: len(_numbers(given))),
    "COUNTA": (1, _ANY, lambda given: sum(value is not None for value in _values(given))),
    "CONCATENATE": (1, _ANY, lambda given: "".join(map(display, _values(given)))),
    "CONCAT": (2, 2, lambda given: display(_scalar(given[0])) + display(_scalar(given[1]))),
    "HYPERLINK": (1, 2, _hyperlink),
    "LEN": (1, 1, lambda given: len(_text(given))),
    "UPPER": (1, 1, lambda given: _text(given).upper()),
    "LOWER": (1, 1, lambda given: _text(given).lower()),
    "TRIM": (1, 1, lambda given: " ".join(_text(given).split())),
    "ROUND": (1, 2, _round),
    "ABS": (1, 1, lambda given: abs(_number(given[0]))),
    "AND": (1, _ANY, lambda given: all(_truths(given))),
    "OR": (1, _ANY, lambda given: any(_truths(given))),
    "NOT": (1, 1, lambda given: not _number(given[0])),
    "TRUE": (0, 0, lambda _: True),
    "FALSE": (0, 0, lambda _: False),
}


def _call(name: str, arguments: list[Node]) -> Node:
    if name in _LAZY:
        fewest, most, node = _LAZY[name]
        return node(arguments) if fewest <= len(arguments) <= most else _raising("#N/A")
    if name not in _FUNCTIONS:
        return _raising("#NAME?")
    fewest, most, function = _FUNCTIONS[name]
    if not fewest <= len(arguments) <= most:
        return _raising("#N/A")
    return lambda cells: function([argument(cells) for argument in arguments])


def _if(arguments: list[Node]) -> Node:
    def choose(cells: Lookup) -> Value | Block:
        if _number(arguments[0](cells)):
            return arguments[1](cells)
        return arguments[2](cells) if len(arguments) > 2 else False

    return choose


def _iferror(arguments: list[Node]) -> Node:
    def choose(cells: Lookup) -> Value | Block:
        try:
            return _scalar(arguments[0](cells))
        except FormulaError:
            return arguments[1](cells) if len(arguments) > 1 else None

    return choose


# Functions that compute only the arguments that they need.
_LAZY: dict[str, tuple[int, int, Callable[[list[Node]], Node]]] = {
    "IF": (2, 3, _if),
    "IFERROR": (1, 2, _iferror),
}
