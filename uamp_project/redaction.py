"""Logs without credentials: values that a line names as secret, or that look so, are removed.

The formatter processes the finished line, and so covers the request line of an access log, the
arguments of a message and the traceback of an exception. Values are recognised by the name before
them (`token=…`, `Authorization: …`, `"password": "…"`), which may be percent-encoded in a URL, and
by their shape (keys and tickets of this server, payment tokens, JWTs, keys of model vendors and of
Stripe, the user information of a URL, PEM private keys).

The text format also marks where an entry begins: its further lines are indented.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable

REDACTED: Final = "[redacted]"
MESSAGE_CHARS: Final = 4000

# Each search is linear in the length of a line, which strangers choose: prefixes are bounded, and a
# long run is consumed by the first match that begins in it.
_NAME: Final = (
    r"(?<![\w-])[\w-]{0,40}?"
    r"(?:token|secret|passw(?:or)?d|api[_-]?key|private[_-]?key|ticket|signature|credentials?"
    r"|authorization|cookie|session[_-]?id|csrf\w{0,20}|x-payment|jws|assertion)"
)
_SECRET_NAME: Final = re.compile(rf"{_NAME}|sig|key|code", re.IGNORECASE)
_SHAPES: Final = re.compile(
    r"""
    \b(?:uak|utk|ptok|ek|shr|inv)_[\w-]{8,}  # keys, tickets, tokens and links of this server
    | \beyJ[\w-]{5,}+(?:\.[\w-]*){0,2}  # JSON Web Tokens, and parts of them
    | \b(?:sk|rk|pk|gsk|xai|whsec|ghp|gho|glpat|hf|AIza)[_-]?[\w-]{16,}  # keys of vendors
    """,
    re.VERBOSE,
)
_PARAMETER: Final = re.compile(r"(?<=[?&;])([^\s=&;?\"'<>]{1,120})=([^\s&;#\"'<>]+)")
_SCHEME: Final = re.compile(
    r"\b(bearer|basic|digest|negotiate)(\s+)[\w.~+/=%:-]{6,}", re.IGNORECASE
)
_COOKIE: Final = re.compile(
    r"(?<![\w-])((?:set-)?cookie\b[\"']?\s*[:=,]\s*(?:b(?=[\"']))?[\"']?)[^\"'\r\n]+", re.IGNORECASE
)
_HEADER: Final = re.compile(
    r"(?<![\w-])((?:proxy-)?authorization\b[\"']?\s*[:=,]\s*(?:b(?=[\"']))?[\"']?)[^\"'\r\n,&]+",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(
    rf"({_NAME}[\"']\s*[:=,]\s*(?:b(?=[\"']))?)([\"'])(?:\\.|(?!\2).)+", re.IGNORECASE
)
_NAMED: Final = re.compile(
    rf"({_NAME}\s*[:=]\s*(?:b(?=[\"']))?)([\"']?)(?!\[redacted\])[^\s\"',;&)}}\]<>]+", re.IGNORECASE
)
# The WebSocket subprotocol in which pages send a key.
_SUBPROTOCOL: Final = re.compile(
    r"(openai-insecure-api-key\.)(?!\[redacted\])[^\s,;\"'\]]+", re.IGNORECASE
)
# The links of emails.
_LINK: Final = re.compile(r"(/password/new/|/account/address/confirm/)[^\s?\"'<>]+")
_USER_INFORMATION: Final = re.compile(r"(?<=://)[^\s/@\"'<>]{1,400}@")
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


def _parameter(match: re.Match[str]) -> str:
    name = unquote_plus(match[1])
    return f"{match[1]}={REDACTED}" if _SECRET_NAME.fullmatch(name) else match[0]


_STEPS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (_PEM, REDACTED),
    (_USER_INFORMATION, f"{REDACTED}@"),
    (_LINK, rf"\1{REDACTED}"),
    (_PARAMETER, _parameter),
    (_COOKIE, rf"\1{REDACTED}"),
    (_HEADER, rf"\1{REDACTED}"),
    (_SCHEME, rf"\1\2{REDACTED}"),
    (_QUOTED, rf"\1\2{REDACTED}"),
    (_NAMED, rf"\1\2{REDACTED}"),
    (_SUBPROTOCOL, rf"\1{REDACTED}"),
    (_SHAPES, REDACTED),
)


def redact(text: str) -> str:
    """Remove the credentials from a log text."""
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return text


def message_of(record: logging.LogRecord) -> str:
    """Return the message of a record, cut to MESSAGE_CHARS.

    Strangers choose the address of a request, and redacting it takes two microseconds a character
    on the loop that serves everyone.
    """
    text = record.getMessage()
    cut = len(text) - MESSAGE_CHARS
    return text if cut <= 0 else f"{text[:MESSAGE_CHARS]}… ({cut} more characters)"


def _as_one_entry(text: str) -> str:
    """Indent all lines but the first, and escape other control characters."""
    return "\n    ".join(text.splitlines()).translate(_CONTROLS)


class RedactingFormatter(logging.Formatter):
    """Formats a record like its base class, then removes the credentials.

    Only the first line of an entry begins in the first column: texts of clients, providers and
    other servers can neither look like another entry nor control a terminal.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 logging's own name
        """Return the line before the traceback."""
        record.message = message_of(record)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the redacted entry, including traceback and stack."""
        return _as_one_entry(redact(super().format(record)))
