"""The port through which each dialect shows how to call an agent. Pure.

The pages for people are built from it and know no dialect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gateway_app.types.example_calls import Language
    from gateway_app.types.stored_response import StoredResponse
    from uamp import events as ev
    from uamp.events import Event


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleQuestion:
    """A question to an agent; `base` is the agent's address without a trailing slash.

    With `chat_id`, it is asked in that chat.
    """

    base: str
    text: str
    chat_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedAnswer:
    """A finished response; `events` are those that a UAMP client receives, in order.

    `link` returns the address of a medium for the reader.
    """

    stored: StoredResponse
    events: Sequence[Event]
    link: Callable[[str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class PresentedMessage:
    """A chat message: an answer, or a message sent to an agent.

    `event` announced it. `question` is the question asked, or None if there is no agent to name.
    """

    event: ev.MessageCreated
    question: ExampleQuestion | None
    answer: FinishedAnswer | None


class ProtocolPresentation(Protocol):
    """A protocol as pages show it."""

    @property
    def key(self) -> str:
        """Its name as a session transport."""

    @property
    def label(self) -> str:
        """Its short name, for display."""

    @property
    def title(self) -> str:
        """Its full name, for display."""

    def addresses(self, base: str) -> Mapping[str, str]:
        """Return the addresses at which an agent speaks it, by transport name."""

    def examples(self, question: ExampleQuestion) -> Mapping[Language, str]:
        """Return example calls that ask the question, by language."""

    def request_frames(self, question: ExampleQuestion) -> Sequence[Any]:
        """Return the frames in which a client asks the question, as JSON values."""

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the frames in which the server answers, built by the dialect's writer."""
