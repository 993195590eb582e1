"""The agents that a daemon has registered on a socket, and the turns assigned to it there.

Each turn is a separate session on the wire (UAMP §10.2): its `input.text` names the agent, and the
daemon's events name the turn. This alone determines the response; any ids that the daemon writes
into its events are ignored.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from django.conf import settings

from sessions_app.access.pacing import Pace
from sessions_app.connected.answer import ENDS, QueuedAnswer
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import uamp
    from sessions_app.access.principal import Principal

ANSWER_EVENTS: Final = tuple(
    cls for cls in ev.ANSWER_EVENTS.values() if cls is not ev.CapabilitiesAnnounced
)
"""The events that a daemon may send in a turn (UAMP §6)."""
TURNS_REMEMBERED: Final = 1_000
PACED_BYTES: Final = 4_096
"""An event counts once for every so many bytes."""


class RegisteredAgent:
    """An agent registered on a socket.

    `name` is the daemon's name for it, `session_id` the session of its registration, and `row` the
    key of its AgentConnection once that is written.
    """

    def __init__(
        self,
        link: AgentSocket,
        *,
        agent_id: str,
        name: str,
        session_id: str,
        principal: Principal,
        capabilities: uamp.Capabilities | None,
    ) -> None:
        self.link = link
        self.agent_id, self.name, self.session_id = agent_id, name, session_id
        self.principal = principal
        self.capabilities = capabilities
        self.row: int | None = None
        self.is_gone = False
        self.answers: dict[str, QueuedAnswer] = {}

    @property
    def has_room(self) -> bool:
        """Whether it can take another answer."""
        return not self.is_gone and len(self.answers) < settings.UAMP_DAEMON_ANSWERS

    def begin(self, response_id: str, event: ev.InputText) -> QueuedAnswer:
        """Send the daemon a turn and return its answer."""
        return self.link.begin(self, response_id, event)


class AgentSocket:
    """The agents registered on one socket.

    The socket's task calls `register`, `unregister`, `take` and `lose_all`; runs call `begin`
    through their daemon. All run on the process's loop. `send` sends a session's frame, `on_change`
    is called when a daemon's number of answers changes, and `on_lost` with daemons that get no more
    turns.
    """

    def __init__(
        self,
        *,
        origin: str,
        base_url: str,
        protocol: uamp.Connection,
        send: Callable[[str, str], None],
        on_change: Callable[[RegisteredAgent], None],
        on_lost: Callable[[Sequence[RegisteredAgent]], None],
    ) -> None:
        self.origin, self.base_url = origin, base_url
        self.daemons: dict[str, RegisteredAgent] = {}
        self.is_closed = False
        # When the daemon's last frame arrived, in seconds of the monotonic clock.
        self.received_at = time.monotonic()
        # How long to wait before reading the next frame, after too many events.
        self.pause = 0.0
        # Whether the last frame was an event of a turn.
        self.took = False
        self._protocol, self._send = protocol, send
        self._on_change, self._on_lost = on_change, on_lost
        self._turns: dict[str, tuple[RegisteredAgent, QueuedAnswer]] = {}
        # Recently ended turns, and whether the server ended them.
        self._over: OrderedDict[str, bool] = OrderedDict()
        self._pace = Pace(
            per_minute=settings.UAMP_DAEMON_EVENTS_PER_MINUTE,
            burst=settings.UAMP_DAEMON_EVENTS_BURST,
            left=settings.UAMP_DAEMON_EVENTS_BURST,
            at=time.monotonic(),
        )

    @property
    def is_busy(self) -> bool:
        """Whether the daemon is working on an answer."""
        return bool(self._turns)

    @property
    def is_silent(self) -> bool:
        """Whether agents have sent nothing for UAMP_DAEMON_SILENCE_SECONDS."""
        silent = time.monotonic() - self.received_at
        return bool(self._agents()) and silent > settings.UAMP_DAEMON_SILENCE_SECONDS

    def principals(self) -> set[Principal]:
        """Return the principals of the agents."""
        return {daemon.principal for daemon in self._agents()}

    def registered_by(self, principal: Principal) -> list[RegisteredAgent]:
        """Return the agents of a principal."""
        return [daemon for daemon in self._agents() if daemon.principal == principal]

    def expired(self) -> list[RegisteredAgent]:
        """Return the agents whose token has expired."""
        return [daemon for daemon in self._agents() if daemon.principal.is_expired]

    def _agents(self) -> set[RegisteredAgent]:
        """Return the registered agents, and unregistered ones whose answers are not finished."""
        return {*self.daemons.values(), *(daemon for daemon, _ in self._turns.values())}

    # --- Registrations ---

    def register(self, daemon: RegisteredAgent) -> None:
        """Start accepting answers from a daemon for its agent on this socket."""
        self._protocol.takes_answers = True
        self.daemons[daemon.session_id] = daemon

    def has_agent(self, agent_id: str) -> bool:
        """Return whether an agent is registered on this socket."""
        return any(daemon.agent_id == agent_id for daemon in self.daemons.values())

    def unregister(self, session_id: str) -> RegisteredAgent | None:
        """Assign no more turns to a registered agent; its running answers continue."""
        daemon = self.take_out(session_id)
        if daemon is not None:
            self._on_lost([daemon])
        return daemon

    def take_out(self, session_id: str) -> RegisteredAgent | None:
        """Like `unregister`, for callers that remove the daemon from the directory themselves."""
        daemon = self.daemons.pop(session_id, None)
        if daemon is not None:
            daemon.is_gone = True
        return daemon

    def drop(self, daemon: RegisteredAgent) -> None:
        """End a registration and its answers, because its principal may no longer act."""
        self.unregister(daemon.session_id)
        for answer in list(daemon.answers.values()):
            answer.lose(cancel=True)

    def lose_all(self) -> None:
        """Handle the closing of the socket."""
        self.is_closed = True
        for _, answer in list(self._turns.values()):
            answer.lose()
        daemons = list(self.daemons.values())
        self.daemons.clear()
        for daemon in daemons:
            daemon.is_gone = True
        if daemons:
            self._on_lost(daemons)

    # --- Turns ---

    def begin(self, daemon: RegisteredAgent, response_id: str, event: ev.InputText) -> QueuedAnswer:
        """Send a turn to the daemon and return its answer."""
        turn_id, tries = response_id, 1
        while turn_id in self._turns or turn_id in self._over:
            # A run that returns to the same socket starts a new turn, so that late events of the
            # old one do not reach it.
            tries += 1
            turn_id = f"{response_id}.{tries}"
        answer = QueuedAnswer(
            turn_id,
            response_id=response_id,
            send=self._send,
            on_close=self._end,
            limit=settings.UAMP_DAEMON_ANSWER_BYTES,
        )
        self._turns[turn_id] = daemon, answer
        daemon.answers[turn_id] = answer
        self._protocol.begin_turn(turn_id)
        self._on_change(daemon)
        answer.ask(event)
        return answer

    def _end(self, answer: QueuedAnswer) -> None:
        daemon, _ = self._turns.pop(answer.turn_id)
        daemon.answers.pop(answer.turn_id, None)
        self._on_change(daemon)
        self._over[answer.turn_id] = not answer.has_ended
        if answer.has_ended and not self.is_closed:
            # The reference's daemon keeps a turn's session until this.
            answer.send(ev.SessionEnd())
        if len(self._over) > TURNS_REMEMBERED:
            forgotten, _ = self._over.popitem(last=False)
            self._protocol.end_turn(forgotten)

    # --- Events ---

    def is_for_turn(self, event: uamp.Event) -> bool:
        """Return whether an event comes from an agent, rather than from the client of a chat."""
        session_id = event.session_id or ""
        in_turn = session_id in self._turns or session_id in self._over
        return in_turn or isinstance(event, ANSWER_EVENTS)

    def take(self, event: uamp.Event, size: int) -> None:
        """Handle an event of a turn with the given size in bytes; raises RemoteProtocolError."""
        self.pause = self._pace.wait(time.monotonic(), 1 + size // PACED_BYTES)
        answer = self._answer_of(event)
        if answer is None:
            return
        if answer.has_ended:
            raise _refusal(event, ErrorCode.INVALID_EVENT, "This answer has ended.")
        answer.take(event, size)

    def _answer_of(self, event: uamp.Event) -> QueuedAnswer | None:
        """Return the answer that an event belongs to; None for late events, which are ignored."""
        session_id = event.session_id or ""
        if session_id in self._over:
            if self._over[session_id] or isinstance(event, ENDS):
                return None
            raise _refusal(event, ErrorCode.INVALID_EVENT, "This answer has ended.")
        if not isinstance(event, ANSWER_EVENTS):
            raise _refusal(
                event,
                ErrorCode.INVALID_EVENT,
                "An agent may send events of its answer only in a turn.",
            )
        if session_id in self._turns:
            return self._turns[session_id][1]
        daemon = self.daemons.get(session_id)
        if daemon is None:
            raise _refusal(event, ErrorCode.UNKNOWN_SESSION, "unknown turn")
        # A daemon with only one turn may name its agent's session instead.
        answers = list(daemon.answers.values())
        if len(answers) == 1:
            return answers[0]
        if isinstance(event, ENDS):
            return None
        raise _refusal(
            event,
            ErrorCode.SESSION_REQUIRED,
            "Send the session_id of the turn that you are answering.",
        )


def _refusal(event: uamp.Event, code: ErrorCode, message: str) -> RemoteProtocolError:
    return RemoteProtocolError(code, message, event_id=event.event_id, session_id=event.session_id)


async def keep_pace(link: AgentSocket) -> None:
    """Wait until the daemon's socket may be read again."""
    if link.pause:
        pause, link.pause = link.pause, 0.0
        await asyncio.sleep(pause)
