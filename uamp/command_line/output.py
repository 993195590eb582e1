"""Prints text without control characters, rows, and lines of JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
import msgspec

from uamp.codec.frames import to_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uamp.client.errors import ClientError
    from uamp.client.state.answers import Piece
    from uamp.events.base import Event

# Agents and people may write anything: a terminal would obey their escape sequences.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# Remedies for a person at a terminal, where they differ from those for a program.
_REMEDIES = {
    "payment_required": "Use --pay-up-to, or answer the question at a terminal.",
    "chat_not_found": "`uamp chats` lists your chats.",
    "agent_not_found": "`uamp agents` lists the agents that you may use.",
}


def printable(text: str) -> str:
    """Replace the control characters in other people's text, which a terminal would obey."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def print_json(value: object) -> None:
    """Print one line of JSON."""
    click.echo(msgspec.json.encode(value).decode())


def print_event(event: Event) -> None:
    """Print an event in its wire form, on one line."""
    print_json(to_dict(event))


def print_rows(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(printable("  ".join(cells).rstrip()))


def print_error(error: ClientError, *, as_json: bool) -> None:
    """Print an error to standard error: what went wrong, and what to do about it."""
    remedy = _REMEDIES.get(error.code, error.what_to_do)
    if as_json:
        value: dict[str, Any] = {"error": {"code": str(error.code), "message": error.message}}
        if remedy:
            value["error"]["what_to_do"] = remedy
        click.echo(msgspec.json.encode(value).decode(), err=True)
        return
    click.echo(f"uamp: {printable(error.message)}", err=True)
    if remedy and remedy not in error.message:
        click.echo(f"      {printable(remedy)}", err=True)


class AnswerPrinter:
    """Prints the answers of a turn as they grow, one below the other.

    A single answer is printed as it is; if several agents answer, each answer starts with the
    agent's name, and the text of a later answer is held back until those before it have ended.
    """

    def __init__(self) -> None:
        self._order: list[str] = []
        self._texts: dict[str, list[str]] = {}
        self._agents: dict[str, str] = {}
        self._ended: set[str] = set()
        self._ends_line = True

    def add(self, piece: Piece) -> None:
        """Add a piece, and print it if its answer's turn has come."""
        key = piece.response_id
        if key not in self._texts:
            self._order.append(key)
            self._texts[key], self._agents[key] = [], piece.agent
            if len(self._order) > 1 and key == self._order[0]:
                self._head(key)
        text = f"\n[{piece.agent} began again]\n{piece.text}" if piece.restarted else piece.text
        if key == self._order[0]:
            self._write(text)
        else:
            self._texts[key].append(text)
        if piece.event.__struct_config__.tag in _ENDS:
            self._ended.add(key)
            self._advance()

    def _advance(self) -> None:
        while self._order and self._order[0] in self._ended:
            self._order.pop(0)
            if self._order:
                self._head(self._order[0])
                self._write("".join(self._texts.pop(self._order[0])))
                self._texts[self._order[0]] = []

    def _head(self, key: str) -> None:
        self.end_line()
        self._write(f"{self._agents[key]}: ")

    def end_line(self) -> None:
        """Start a new line, unless the last line has ended."""
        if not self._ends_line:
            click.echo()
            self._ends_line = True

    def _write(self, text: str) -> None:
        if text:
            click.echo(printable(text), nl=False)
            self._ends_line = text.endswith("\n")


_ENDS = frozenset({"response.done", "response.cancelled", "response.error"})
