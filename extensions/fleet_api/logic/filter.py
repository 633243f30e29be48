"""Filters of lists and event streams: a subset of the Common Expression Language, parsed and checked here, compiled to functions.

    expression = and { "||" and } .
    and        = relation { "&&" relation } .
    relation   = unary [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" ) unary ] .
    unary      = "!" unary | primary .
    primary    = "(" expression ")" | list | literal | "timestamp" "(" string ")" | field { "." method "(" string ")" | "[" string "]" } .
    method     = "startsWith" | "endsWith" | "contains" .
    list       = "[" [ literal { "," literal } ] "]" .
    literal    = string | integer | "true" | "false" | "null" .

Types are checked before anything is evaluated. What fails only for some objects, such as a missing label or a comparison with null, is
an error as in CEL: `false && error` is false, `true || error` is true, and an object with an error as the result does not match.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....plugins.module_utils.common.timestamps import parse_time
from ....plugins.module_utils.common.types import Object
from .filter_nodes import (
    BOOL,
    COMPARISONS,
    FAILED,
    INT,
    LIST,
    NULL,
    STRING,
    TIMESTAMP,
    Evaluate,
    Field,
    FilterError,
    Node,
    Predicate,
    compared,
    constant,
    contained,
    equal,
    expect,
    indexed,
)

LONGEST, DEEPEST, LARGEST_LIST = 1000, 32, 100
METHODS: Mapping[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": operator.contains,
}
ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "r": "\r"}
TOKEN = re.compile(
    r"""\s*(?:
        (?P<int>-?[0-9]+)
      | (?P<string>"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol>\|\||&&|==|!=|<=|>=|[<>!()\[\],.])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def compile_filter(text: str, fields: Mapping[str, Field]) -> Predicate:
    """The function that says whether an object matches. FilterError for what is not of the grammar, or of the wrong type."""
    if len(text) > LONGEST:
        raise FilterError(f"the filter has {len(text)} characters, {LONGEST} are allowed")
    evaluate = _Parser(_tokens(text), fields).parse()
    return lambda item: evaluate(item) is True


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    while text[position:].strip(" \t\n\r"):
        match = TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise FilterError(f"unexpected character at position {position + 1}")
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
        position = match.end()
    return [*found, _Token("end", "the end", len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token], fields: Mapping[str, Field]) -> None:
        self._tokens = tokens
        self._fields = fields
        self._next = 0
        self._depth = 0

    def parse(self) -> Evaluate:
        node = self._expression()
        if self._current.kind != "end":
            raise self._unexpected()
        return expect(node, BOOL).evaluate

    @property
    def _current(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _accept(self, *texts: str) -> _Token | None:
        is_word = self._current.kind in ("symbol", "name")
        return self._take() if is_word and self._current.text in texts else None

    def _require(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(text)

    def _unexpected(self, wanted: str = "") -> FilterError:
        instead = f", {wanted} is expected" if wanted else ""
        return FilterError(f"unexpected {self._current.text[:20]} at position {self._current.position}{instead}")

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise FilterError(f"the filter is nested more than {DEEPEST} deep")
        node = self._joined("||", lambda: self._joined("&&", self._relation, False), True)
        self._depth -= 1
        return node

    def _joined(self, symbol: str, operand: Callable[[], Node], decides: bool) -> Node:
        """Operands of one operator; the result is `decides` if one of them is, whatever the others are."""
        nodes = [operand()]
        while self._accept(symbol):
            nodes.append(operand())
        if len(nodes) == 1:
            return nodes[0]
        parts = [expect(node, BOOL).evaluate for node in nodes]

        def evaluate(item: Object) -> Any:
            result: Any = not decides
            for part in parts:
                value = part(item)
                if value is decides:
                    return decides
                if value is FAILED:
                    result = FAILED
            return result

        return Node(BOOL, evaluate, nodes[0].position)

    def _relation(self) -> Node:
        left = self._unary()
        found = self._accept("==", "!=", *COMPARISONS, "in")
        if found is None:
            return left
        right = self._unary()
        if found.text == "in":
            return contained(left, right)
        relate = equal if found.text in ("==", "!=") else compared
        return relate(left, right, found.text, found.position)

    def _unary(self) -> Node:
        negations = 0
        while self._accept("!"):
            negations += 1
        node = self._primary()
        if not negations:
            return node
        inner = expect(node, BOOL).evaluate
        if negations % 2 == 0:
            return Node(BOOL, inner, node.position)

        def negated(item: Object) -> Any:
            value = inner(item)
            return value if value is FAILED else not value

        return Node(BOOL, negated, node.position)

    def _primary(self) -> Node:
        token = self._current
        if self._accept("("):
            node = self._expression()
            self._require(")")
            return node
        if self._accept("["):
            return self._list(token.position)
        if self._accept("timestamp"):
            return self._timestamp(token.position)
        if token.kind in ("int", "string") or token.text in ("true", "false", "null"):
            return self._literal()
        if token.kind != "name":
            raise self._unexpected()
        return self._field()

    def _literal(self) -> Node:
        token = self._take()
        words: dict[str, tuple[str, Any]] = {"true": (BOOL, True), "false": (BOOL, False), "null": (NULL, None)}
        if token.kind == "int":
            if not -(2**63) <= int(token.text[:21]) < 2**63 or len(token.text) > 20:
                raise FilterError(f"the number at position {token.position} is too large")
            return constant(INT, int(token.text), token.position)
        if token.kind == "string":
            return constant(STRING, _unquoted(token), token.position)
        if token.kind == "name" and token.text in words:
            return constant(*words[token.text], token.position)
        self._next -= 1
        raise self._unexpected()

    def _list(self, position: int) -> Node:
        nodes: list[Node] = []
        while not self._accept("]"):
            if nodes:
                self._require(",")
            nodes.append(self._literal())
        if len(nodes) > LARGEST_LIST:
            raise FilterError(f"the list at position {position} has more than {LARGEST_LIST} elements")
        types = {node.type for node in nodes}
        if len(types) > 1:
            raise FilterError(f"the elements of the list at position {position} have different types")
        values = frozenset(node.evaluate({}) for node in nodes)
        return Node(LIST, lambda _item: values, position, of=types.pop() if types else "")

    def _timestamp(self, position: int) -> Node:
        self._require("(")
        text = expect(self._literal(), STRING).evaluate({})
        self._require(")")
        moment = parse_time(text) if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$", text) else None
        if moment is None:
            raise FilterError(f"the timestamp at position {position} is not like 2027-01-01T00:00:00Z")
        return constant(TIMESTAMP, moment, position)

    def _field(self) -> Node:
        token = self._take()
        field = self._fields.get(token.text)
        if field is None:
            raise FilterError(
                f"unknown field {token.text[:40]} at position {token.position}; the fields are {', '.join(sorted(self._fields))}"
            )
        node = Node(field.type, field.get, token.position, nullable=field.nullable)
        while found := self._accept(".", "["):
            if found.text == "[":
                node = indexed(node, expect(self._literal(), STRING))
                self._require("]")
            else:
                node = self._method(node)
        return node

    def _method(self, node: Node) -> Node:
        if self._current.text not in METHODS:
            raise self._unexpected(" or ".join(METHODS))
        method = METHODS[self._take().text]
        self._require("(")
        argument = expect(self._literal(), STRING).evaluate({})
        self._require(")")
        text = expect(node, STRING).evaluate

        def evaluate(item: Object) -> Any:
            value = text(item)
            return value if value is FAILED else method(value, argument)

        return Node(BOOL, evaluate, node.position)


def _unquoted(token: _Token) -> str:
    def escaped(match: re.Match[str]) -> str:
        if match[1] not in ESCAPES:
            raise FilterError(f"unknown escape \\{match[1]} in the string at position {token.position}")
        return ESCAPES[match[1]]

    return re.sub(r"\\(.)", escaped, token.text[1:-1])
