"""Answers and calls of the agents of the kill matrix.

What an agent says follows from its name, its question and its tools' results alone, so
that `expected_text` knows an answer without having received it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

JOURNAL: Final = "KILL_JOURNAL"
"""The environment variable that names the folder of the journals."""

TALLY_STEPS: Final = 4
TOOL_PAUSE: Final = 0.15
WORD_PAUSE: Final = 0.03

CLIENT_TOOL: Final = "lookup"
TOOLS_OF: Final = {
    "teller": (),
    "stepper": ("tally", "note"),
    "sender": ("send_once",),
    "asker": (),
    "pair": ("tally", "send_once"),
}
"""The server tools of each agent."""

IDEMPOTENT: Final = {"tally": True, "send_once": False}
"""The long tools."""

TOOL_PATHS: Final = [f"tests.faults.kill_agents.{name}" for name in ("TALLY", "SEND_ONCE", "NOTE")]


Round = tuple[str, tuple[str, ...]]
"""What an agent says, then the tools that it calls."""

_END = " ".join(f"word{number}" for number in range(20)) + " almost the end."


def _reported(results: Sequence[str]) -> str:
    return "".join(f"It answered: {result} " for result in results)


def said_in_round(agent: str, number: int, results: Sequence[str]) -> Round:
    """Return a round of an agent; `results` are those of the round before."""
    # The results of a batch have no order of their own.
    reported = _reported(sorted(results))
    rounds: dict[tuple[str, int], Round] = {
        ("stepper", 0): ("I count first. ", ("tally",)),
        ("stepper", 1): (f"{reported}Then I write it down, so that it is kept. ", ("note",)),
        ("sender", 0): ("I send it now. ", ("send_once",)),
        ("asker", 0): ("I ask you. ", (CLIENT_TOOL,)),
        ("asker", 1): (f"{reported}And once more, to be sure of it. ", (CLIENT_TOOL,)),
        ("pair", 0): ("I do both. ", ("tally", "send_once")),
    }
    return rounds.get((agent, number), (f"{reported}{_END}", ()))


def expected_text(agent: str, rounds: Sequence[Sequence[str]]) -> str:
    """Return all that an agent says; `rounds` are the results of each round of calls."""
    before: Sequence[Sequence[str]] = [(), *rounds]
    return "".join(
        said_in_round(agent, number, reported)[0] for number, reported in enumerate(before)
    )
