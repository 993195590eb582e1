"""The interface between a run and its parts: tools, payment, checkpoints and end.

The run creates the port and the parts. The port refers to neither the run nor the parts, so no
reference cycle keeps an answer in memory after its run: garbage collection is rare
(`lifespan.calm_collector`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from chat_app.log import fanout
from sessions_app import database
from sessions_app.frames import frame
from sessions_app.response.clock import ResponseClock
from sessions_app.response.output.answer import RunningAnswer
from sessions_app.response.output.spoken_sound import SpokenSound, milliseconds_of, sound_of
from sessions_app.response.output.subscribers import Subscribers
from sessions_app.response.output.text_frames import TextFrames
from sessions_app.response.row_state import RowState
from sessions_app.tools.delegated_calls import root_chat
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.response.clock import IdleResponses
    from sessions_app.response.context import RunContext


class DelegatedRun(Protocol):
    """A run in this process to which an answer delegated work."""

    @property
    def has_ended(self) -> bool:
        """Whether it has published everything but its end."""

    @property
    def waits_for_client(self) -> bool:
        """Whether it can only proceed with a client's, person's or payer's input."""


class RunPort:
    """Publishes the events of one response; holds its answer, its clock and its row's state.

    The run's task, its tools' tasks and the listener of a delegated response call it, all on the
    process's event loop. Only the run's task calls `end`, once.
    """

    def __init__(self, context: RunContext, idle: IdleResponses) -> None:
        self.context = context
        self.answer = RunningAnswer(context)
        self.subscribers = Subscribers(context)
        self.clock = ResponseClock(context, idle)
        self.row = RowState(context)
        self.sound = SpokenSound(context)
        # The model's transcripts of the audio that it answers.
        self.transcripts: list[str] = []
        self.has_ended = False
        self._text_frames = TextFrames(self.subscribers)

    @property
    def response_id(self) -> str:
        """The id of the response."""
        return self.context.response_id

    def publish(self, output: ev.Event | str) -> None:
        """Add text or an event to the answer and send it to everyone who receives this response."""
        if isinstance(output, str):
            if output:
                self._text_frames.add(self.answer.add_text(output), output)
            return
        if (piece := sound_of(output)) is not None:
            # Sound goes only to local listeners; everyone else reads it once it is stored.
            self.sound.add(piece)
            self.answer.spoke(milliseconds_of(piece))
            self.send_here(frame(output))
            return
        if isinstance(output, ev.TranscriptDone) and output.role == "user":
            self.transcripts.append(output.transcript or "")
        self.answer.add(output)
        text = frame(output)
        self.send_here(text)
        self.subscribers.send_to_group(text)

    def send_here(self, text: str) -> None:
        """Send a frame to local listeners, after any text that precedes it."""
        self._text_frames.flush()
        self.subscribers.send_here(text)

    def send_to_asker(self, event: ev.Event) -> None:
        """Send an event, such as a `tool.call`, to the session that asked, in any process."""
        text = frame(event)
        self.send_here(text)
        self.subscribers.send_to_session(text)

    async def ask_person(self, question: ev.ToolApprovalRequired) -> None:
        """Send a question to the chat of the original request (ToolCall.asked_in)."""
        text = frame(question)
        self.send_here(text)
        chat_id = await database.run(root_chat, self.response_id)
        signal = fanout.signal_message(
            chat_id=chat_id, frame=text, origin=self.context.origin, response_id=self.response_id
        )
        await fanout.send(fanout.chat_group(chat_id), signal)

    async def send_to_payer(self, event: ev.Event, user_id: int | None) -> None:
        """Send an event to the payer, in the chat of the original request."""
        context, text = self.context, frame(event)
        # The asker of delegated work does not listen to this response.
        listens = user_id == context.user_id and context.parent is None
        if listens:
            self.send_here(text)
            if not self.subscribers.reads_group:
                return
        signal = fanout.signal_message(
            chat_id=context.asked_in,
            frame=text,
            origin=context.origin if listens else "",
            to_user_id=user_id,
            response_id=self.response_id,
        )
        await fanout.send(fanout.chat_group(context.asked_in), signal)

    async def send_to_others(self, event: ev.Event, user_id: int | None) -> None:
        """Send an event to all members of a chat except one.

        Nothing is sent if the excluded one is a visitor, or for delegated work.
        """
        context = self.context
        if user_id is not None and context.parent is None:
            signal = fanout.signal_message(
                chat_id=context.chat_id, frame=frame(event), user_id=user_id
            )
            await fanout.send(fanout.chat_group(context.chat_id), signal)

    def end(self) -> None:
        """Send the remaining text; only the end of the response may follow."""
        self.has_ended = True
        self._text_frames.flush()
