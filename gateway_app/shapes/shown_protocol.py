"""The port by which a protocol shows how an agent is called in it. Pure; each dialect has one.

Pages for people are made of it: they know no dialect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gateway_app.shapes.example_calls import Language
    from gateway_app.shapes.stored_response import StoredResponse
    from uamp import events as ev
    from uamp.events import Event


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleQuestion:
    """A question to an agent; `base` is the agent's address without a slash at its end.

    With `chat_id` it is asked in that chat.
    """

    base: str
    text: str
    chat_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownAnswer:
    """A response that has ended; `events` are those that a client of UAMP gets of it, in order.

    `link` returns the address of a medium for the reader.
    """

    stored: StoredResponse
    events: Sequence[Event]
    link: Callable[[str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownMessage:
    """A message of a chat: an answer, or what was sent to an agent.

    `event` announced it. `question` is what was asked; None where no agent is to be named.
    """

    event: ev.MessageCreated
    question: ExampleQuestion | None
    answer: ShownAnswer | None


class ShownProtocol(Protocol):
    """A protocol as pages show it."""

    @property
    def key(self) -> str:
        """Its name as a transport of sessions."""

    @property
    def label(self) -> str:
        """Its short name."""

    @property
    def title(self) -> str:
        """Its whole name."""

    def addresses(self, base: str) -> Mapping[str, str]:
        """Return where an agent speaks it, by the names of its transports."""

    def examples(self, question: ExampleQuestion) -> Mapping[Language, str]:
        """Return calls that ask the question, by language."""

    def asked(self, question: ExampleQuestion) -> Sequence[Any]:
        """Return the frames with which a client asks the question, as JSON values."""

    def answered(self, answer: ShownAnswer) -> Iterator[Any]:
        """Yield the frames with which the server answers, made by the writer of the dialect."""
