"""How an MCP server is reached, read from its row once: program or address, secrets, limits.

A program is started only when UAMP_MCP_COMMANDS lists it, an address is asked only when
the rules of outbound requests let it through, and no secret is in any message or log.
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
# A shorter value is a setting such as "1" or "en", and would be hidden wherever it occurs.
_SECRET_CHARS = 6


class SourceFailed(Exception):
    """The source cannot be used now; the message gives the reason, for a person, without secrets.

    `is_unsure`: the call was on its way, and may have been carried out.
    """

    def __init__(self, message: str, *, is_unsure: bool = False) -> None:
        super().__init__(message)
        self.is_unsure = is_unsure


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
    """Where a source is; `seconds` are for one call, `max_bytes` for one answer."""

    source: str
    way: Program | Address
    seconds: float
    max_bytes: int
    secrets: tuple[str, ...] = ()

    def hide(self, text: str) -> str:
        """Return a text without the secrets of this source."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def place_of(source: ToolSource) -> Place:
    """Return where a source is; raises SourceFailed when it may not be used."""
    given = source.env if source.transport == ToolSourceTransport.STDIO else source.headers
    values = {str(name): resolved(str(value)) for name, value in given.items()}
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
        secrets=_secrets(values, given),
    )


def check_command(command: str) -> None:
    """Raise SourceFailed for a program that this server may not start."""
    if command not in settings.UAMP_MCP_COMMANDS:
        raise SourceFailed(
            f"The program {command!r} may not be started: the setting UAMP_MCP_COMMANDS does not"
            " list it."
        )


def policy() -> Policy:
    """Return which addresses may be asked."""
    return Policy(
        allowed=frozenset(name.lower() for name in settings.UAMP_MCP_PRIVATE_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
    )


def check_references(value: str) -> None:
    """Raise SourceFailed for a `${NAME}` that is not open to sources.

    Only names that begin with MCP_ are: a row must not be a way to this server's own secrets.
    """
    for name in _REFERENCE.findall(value):
        if not name.startswith(_OPEN_NAMES):
            raise SourceFailed(f"${{{name}}} is not open to sources: names begin with MCP_.")


def resolved(value: str) -> str:
    """Return a value with its `${MCP_…}` replaced; raises SourceFailed for what is not there."""
    check_references(value)

    def found(match: re.Match[str]) -> str:
        name = match[1]
        if name not in os.environ:
            raise SourceFailed(f"The environment variable {name} is not set.")
        return os.environ[name]

    return _REFERENCE.sub(found, value)


def shown(value: str) -> str:
    """Return a value as a person may see it: a reference, with a word before it, or nothing."""
    return value if _OPEN_VALUE.fullmatch(value) else HIDDEN


def _secrets(values: Mapping[str, str], given: Mapping[str, object]) -> tuple[str, ...]:
    """Return what to hide, the longest first: whole values, their words, what references gave."""
    found = set(values.values())
    for value in values.values():
        found.update(value.split())
    for text in given.values():
        found.update(os.environ.get(name, "") for name in _REFERENCE.findall(str(text)))
    return tuple(sorted((s for s in found if len(s) >= _SECRET_CHARS), key=len, reverse=True))
