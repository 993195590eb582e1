"""The place of an MCP server, read from its row: program or address, secrets, limits.

A program is started only if UAMP_MCP_COMMANDS lists it, an address is contacted only if the rules
for outbound requests allow it, and no message or log contains a secret.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from agents_app.models import ToolSource, ToolSourceTransport
from agents_app.outbound.rules import Policy, Target, Unreachable, check_url

HIDDEN = "********"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPEN_VALUE = re.compile(rf"(?:[A-Za-z]+ )?{_REFERENCE.pattern}")
_OPEN_NAMES = "MCP_"
# Shorter values are settings such as "1" or "en", which would be hidden wherever they occur.
_SECRET_CHARS = 6


class SourceFailed(Exception):
    """The source cannot be used now; the message says why, for people, without secrets.

    `is_unsure`: the call had been sent and may have been carried out. `cause` is the kind of the
    failure, without text from the source.
    """

    def __init__(
        self, message: str, *, is_unsure: bool = False, cause: str = "unreachable"
    ) -> None:
        super().__init__(message)
        self.is_unsure = is_unsure
        self.cause = cause


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that speaks MCP on its standard input and output."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Address:
    """A server that speaks MCP over streamable HTTP."""

    target: Target
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of a source; `seconds` is the limit of one call, `max_bytes` that of one answer."""

    source: str
    way: Program | Address
    seconds: float
    max_bytes: int
    secrets: tuple[str, ...] = ()

    def hide(self, text: str) -> str:
        """Remove the secrets of this source from a text."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def place_of(source: ToolSource) -> Place:
    """Return the place of a source; raises SourceFailed if it may not be used."""
    templates = source.env if source.transport == ToolSourceTransport.STDIO else source.headers
    values = {str(name): resolved(str(value)) for name, value in templates.items()}
    way: Program | Address
    if source.transport == ToolSourceTransport.STDIO:
        check_command(source.command)
        way = Program(
            command=source.command, args=tuple(str(arg) for arg in source.args), env=values
        )
    else:
        try:
            target = check_url(source.url, policy())
        except Unreachable as error:
            raise SourceFailed(f"{source.name} cannot be reached: {error.reason}.") from error
        way = Address(target=target, headers=values)
    return Place(
        source=source.name,
        way=way,
        seconds=source.seconds,
        max_bytes=settings.UAMP_MCP_RESULT_BYTES,
        secrets=_secrets(values, templates),
    )


def check_command(command: str) -> None:
    """Raise SourceFailed if this server may not start a program."""
    if command not in settings.UAMP_MCP_COMMANDS:
        raise SourceFailed(
            f"The program {command!r} may not be started: the setting UAMP_MCP_COMMANDS does not"
            " list it.",
            cause="not configured",
        )


def policy() -> Policy:
    """Return the policy for addresses of sources."""
    return Policy(
        allowed=frozenset(name.lower() for name in settings.UAMP_MCP_PRIVATE_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
    )


def check_references(value: str) -> None:
    """Raise SourceFailed if a value has a `${NAME}` that sources may not use.

    Only names that begin with MCP_ are allowed: rows must not reveal this server's own secrets.
    """
    for name in _REFERENCE.findall(value):
        if not name.startswith(_OPEN_NAMES):
            raise SourceFailed(
                f"${{{name}}} is not open to sources: names begin with MCP_.",
                cause="not configured",
            )


def resolved(value: str) -> str:
    """Return a value with every `${MCP_…}` replaced; raises SourceFailed if one is not set."""
    check_references(value)

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        if name not in os.environ:
            raise SourceFailed(
                f"The environment variable {name} is not set.", cause="not configured"
            )
        return os.environ[name]

    return _REFERENCE.sub(value_of, value)


def redacted(value: str) -> str:
    """Return a value if it is only a reference, with at most a word before it; hide any other."""
    return value if _OPEN_VALUE.fullmatch(value) else HIDDEN


def _secrets(values: Mapping[str, str], templates: Mapping[str, object]) -> tuple[str, ...]:
    """Return the secrets to hide, longest first: values, their words and expanded references."""
    secrets = set(values.values())
    for value in values.values():
        secrets.update(value.split())
    for text in templates.values():
        secrets.update(os.environ.get(name, "") for name in _REFERENCE.findall(str(text)))
    return tuple(sorted((s for s in secrets if len(s) >= _SECRET_CHARS), key=len, reverse=True))
