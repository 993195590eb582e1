"""The aims, and the table of measurements for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Results = Mapping[str, Mapping[str, Any]]


DATABASES: Final = (("SQLite", "sqlite"), ("PostgreSQL", "postgresql"))


@dataclass(frozen=True, kw_only=True)
class Aim:
    """A figure (`command`, `name`) that should be at most `limit`, or at least, with `at_least`."""

    what: str
    command: str
    name: str
    limit: float
    unit: str = "x"
    at_least: bool = False

    def is_met(self, median: float) -> bool:
        """Return whether a median meets the aim."""
        return median >= self.limit if self.at_least else median <= self.limit


@dataclass(frozen=True, kw_only=True)
class AimRow:
    """An aim and its measurement."""

    aim: Aim
    median: float
    low: float
    high: float
    rounds: int


def _both(what: str, command: str, name: str, limit: float, unit: str = "x") -> Iterator[Aim]:
    """Yield an aim for each database, whose name replaces `{}`."""
    for title, database in DATABASES:
        yield Aim(
            what=f"{what}, {title}",
            command=command,
            name=name.format(database),
            limit=limit,
            unit=unit,
        )


AIMS: Final = (
    Aim(
        what="stored turn at 32 sockets / reference, SQLite",
        command="turns",
        name="turn.sqlite.32.reference",
        limit=1.6,
    ),
    Aim(
        what="stored turn at 32 sockets / reference, PostgreSQL",
        command="turns",
        name="turn.postgresql.32.reference",
        limit=1.9,
    ),
    *_both("stored turn at 1 socket / reference", "turns", "turn.{}.1.reference", 3.0),
    *_both(
        "streamed completion, 16 streams / turn",
        "completions",
        "completions.{}.16.websocket.cpu",
        1.5,
    ),
    *_both(
        "streamed completion, 16 streams / LiteLLM",
        "completions",
        "completions.{}.16.litellm.cpu",
        0.25,
    ),
    Aim(
        what="turn with a model, 16 streams / 016dea2",
        command="model",
        name="model.sqlite.16.earlier",
        limit=0.5,
    ),
    Aim(
        what="the same / proxy of bytes (httpx)",
        command="model",
        name="model.sqlite.16.httpx",
        limit=2.0,
    ),
    Aim(
        what="question to first delta, a model, 1 stream",
        command="model",
        name="model.sqlite.1.first_p50",
        limit=3.0,
        unit="ms",
    ),
    *_both("paid turn at 32 sockets / free", "paid", "paid.{}.32", 1.5),
    Aim(
        what="delta to 100 members, one process",
        command="fanout",
        name="fanout.sqlite.1",
        limit=45,
        unit="µs",
    ),
    Aim(
        what="delta to 100 members, two processes",
        command="fanout",
        name="fanout.postgresql.2",
        limit=60,
        unit="µs",
    ),
    Aim(
        what="two processes / one, capacity",
        command="workers",
        name="workers.2.capacity",
        limit=1.8,
        at_least=True,
    ),
    *_both("a process without work, a second", "idle", "idle.{}.cpu", 2.0, "ms"),
    Aim(
        what="memory, growth in the last half of the turns",
        command="memory",
        name="memory.sqlite.last_half",
        limit=2.0,
        unit="MiB",
    ),
    Aim(
        what="memory for a reader who is owed 20 MB",
        command="slow_reader",
        name="slow_reader.sqlite.growth",
        limit=1.0,
        unit="MiB",
    ),
    Aim(
        what="p99 of the others, beside that reader",
        command="slow_reader",
        name="slow_reader.sqlite.p99",
        limit=1.1,
    ),
    *_both("page of a chat, 100,000 messages / 100", "growth", "growth.{}.rest", 1.1),
    *_both("session in that chat / in one of 100", "growth", "growth.{}.session", 1.1),
    *_both("turn at 1,000,000 rows / at 1,000", "growth", "growth.{}.turn", 1.1),
)
"""In the order of the table. CPU unless stated otherwise."""


def verdict_of(row: AimRow) -> str:
    """Return `met`, `not met`, or `undecided` if the rounds lie on both sides of the aim."""
    if row.aim.is_met(row.low) != row.aim.is_met(row.high):
        return "undecided"
    return "met" if row.aim.is_met(row.median) else "not met"


def rows_of(results: Results) -> list[AimRow]:
    """Return the aims that have been measured."""
    rows = []
    for aim in AIMS:
        figure = results.get(aim.command, {}).get("figures", {}).get(aim.name)
        if figure:
            spread = {key: figure[key] for key in ("median", "low", "high", "rounds")}
            rows.append(AimRow(aim=aim, **spread))
    return rows


def formatted(value: float) -> str:
    """Format a figure with two or three significant digits."""
    digits = 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}"


def _terms(results: Results) -> list[str]:
    """Return the table of a turn's components, relative to the reference's turn."""
    figures = results.get("turns", {}).get("figures", {})
    lines = [
        "| CPU of a turn / the reference's | sockets | in all | loop | store | floor |",
        "|---|---|---|---|---|---|",
    ]
    for title, database in DATABASES:
        for sockets in (1, 32):
            prefix = f"turn.{database}.{sockets}.reference"
            names = (prefix, f"{prefix}.loop", f"{prefix}.store", f"turn.floor.{sockets}.reference")
            if all(name in figures for name in names):
                values = " | ".join(formatted(figures[name]["median"]) for name in names)
                lines.append(f"| {title} | {sockets} | {values} |")
    return lines


def render(results: Results) -> str:
    """Return the tables in Markdown, with the time and load of each command's run."""
    lines = ["| | aim | median | least to greatest | |", "|---|---|---|---|---|"]
    for row in rows_of(results):
        aim = row.aim
        sign = "≥" if aim.at_least else "≤"
        unit = "" if aim.unit == "x" else f" {aim.unit}"
        spread = f"{formatted(row.low)} to {formatted(row.high)}" if row.rounds > 1 else "one run"
        lines.append(
            f"| {aim.what} | {sign} {aim.limit:g}{unit} | {formatted(row.median)}{unit}"
            f" | {spread} | {verdict_of(row)} |"
        )
    lines += ["", *_terms(results)]
    lines += ["", "| command | when (UTC) | commit | load, first and last |", "|---|---|---|---|"]
    for command in dict.fromkeys(aim.command for aim in AIMS):
        if command in results:
            run = results[command]
            load = " and ".join(f"{value:g}" for value in run["load"])
            lines.append(f"| `{command}` | {run['at']} | {run['commit']} | {load} |")
    return "\n".join(lines)
