"""The value of incomplete JSON text (UPP-1.3 §10.5).

A name without a value is left out; strings, numbers and the objects and arrays around them are
returned as far as they are known. Makes one pass over the text.
"""

import re
from typing import Any

import msgspec

_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<cut_text>".*)|(?P<begin>[{\[])|(?P<end>[}\]])'
    r'|(?P<scalar>[^\s,:"{}\[\]]+)|[,:]',
    re.DOTALL,
)
# The first half of a surrogate pair is not a character without the second.
_CUT_ESCAPE = re.compile(
    r"(?<!\\)((?:\\\\)*)\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z"
)
_LITERALS = frozenset({"true", "false", "null"})
_CLOSERS = {"{": "}", "[": "]"}


def parse_partial(text: str) -> Any:
    """Return the value of JSON text that may be cut off anywhere, or None if there is none yet."""
    try:
        return msgspec.json.decode(_close(text))
    except (msgspec.DecodeError, RecursionError):
        return None


def _close(text: str) -> str:
    """Return the longest prefix that can be completed, with its closing brackets."""
    closers: list[str] = []
    complete = (0, "", list[str]())
    previous = ""
    for token in _TOKEN.finditer(text):
        kind, lexeme = token.lastgroup, token[0]
        is_name = closers[-1:] == ["}"] and previous in "{,"
        previous = lexeme
        if kind == "begin":
            closers.append(_CLOSERS[lexeme])
        elif kind == "end" and closers:
            closers.pop()
        elif kind == "scalar" and token.end() == len(text):
            lexeme = _cut_scalar(lexeme)
        elif kind == "cut_text":
            lexeme = _CUT_ESCAPE.sub(r"\1", lexeme) + '"'
        if kind and lexeme and not (is_name and kind.endswith("text")):
            complete = (token.start(), lexeme, closers[:])
    start, lexeme, open_then = complete
    return text[:start] + lexeme + "".join(reversed(open_then))


def _cut_scalar(text: str) -> str:
    """Return the certain part of the last scalar."""
    number = text.rstrip("+-.eE")
    return number if number[-1:].isdigit() else text * (text in _LITERALS)
