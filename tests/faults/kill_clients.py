"""The clients of the kill matrix: they lose their server, come back, and go on.

One asks and answers tool calls, another only reads the chat. Whatever they receive goes into a
`Story`, which fails on a gap in a text and on a durable event that is reported twice.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from websockets.exceptions import WebSocketException

from tests.client import TERMINAL, Frame, Story, UampClient, new_event
from tests.faults.kill_script import CLIENT_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.kill_servers import ServerGroup

GIVE_UP_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.1
# Nothing was lost when a server that lives does not answer within this; it is only slow.
SILENT_SECONDS: Final = 20.0
ANSWER: Final = "42"
"""What the client's tool answers, as JSON."""
LOST: Final = (OSError, WebSocketException, EOFError)


class Client(threading.Thread):
    """A session that is resumed on the next server whenever its socket is lost."""

    def __init__(self, group: ServerGroup, first: int, *, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.story = Story()
        self.created: Frame = {}
        self.failure: BaseException | None = None
        self.connections = 0
        self.server = first
        self.ready = threading.Event()
        self._group = group
        self._give_up = time.monotonic() + GIVE_UP_SECONDS

    def run(self) -> None:
        """Go on until the story is over."""
        try:
            while not self.is_over() and time.monotonic() < self._give_up:
                try:
                    self._connection()
                except LOST:
                    self.server = (self.server + 1) % len(self._group.ports)
                    time.sleep(AGAIN_SECONDS)
            self._check_over()
        except BaseException as failure:  # noqa: BLE001 the thread that joins it raises it
            self.failure = failure

    def _check_over(self) -> None:
        if not self.is_over():
            raise TimeoutError(f"{self.name} did not hear the end")

    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        raise NotImplementedError

    def session(self) -> dict[str, Any]:
        """Return the fields of the `session.create`."""
        raise NotImplementedError

    def hear(self, socket: UampClient, frame: Frame) -> None:
        """Take what was added to the story."""

    def opened(self, socket: UampClient) -> None:
        """Do what a new socket is for."""

    def _connection(self) -> None:
        url = f"ws://127.0.0.1:{self._group.ports[self.server]}/uamp"
        headers = {"Authorization": f"Bearer {self._group.token}"}
        with UampClient(url, headers=headers) as socket:
            self.connections += 1
            resume = {}
            if self.created:
                after = {name: self.created[name] for name in ("session_id", "epoch")}
                resume = {"resume": {**after, "after": self.story.after}}
            socket.send("session.create", uamp_version="1.0", **self.session(), **resume)
            while not self.is_over() and time.monotonic() < self._give_up:
                frame = socket.receive(SILENT_SECONDS)
                self._take(socket, frame)

    def _take(self, socket: UampClient, frame: Frame) -> None:
        if frame["type"] == "session.created":
            if not self.created:
                self.created = frame
                self.story.after = frame["seq"]
            elif not frame["resumed"]:
                raise AssertionError(f"the session could not be resumed: {frame}")
            self.opened(socket)
            self.ready.set()
        self.story.take(frame)
        if frame["type"] == "session.error":
            raise AssertionError(frame)
        self.hear(socket, frame)


class Asker(Client):
    """It asks once, under the same ids until that arrives, and answers what it is asked."""

    def __init__(
        self,
        group: ServerGroup,
        first: int,
        *,
        agent: str,
        tag: str,
        watch: Callable[[Asker, Frame], None],
    ) -> None:
        super().__init__(group, first, name=f"asker {tag} of {agent}")
        self.agent, self.tag = agent, tag
        self.response_id = ""
        self.end: Frame = {}
        self.asked_at = 0.0
        self.calls: dict[str, int] = {}
        self._watch = watch
        self._asked = threading.Event()
        self._events: Sequence[Frame] = (
            new_event("input.text", text=tag),
            new_event("response.create"),
        )

    def ask(self) -> None:
        """Let it ask: the listener is there."""
        self._asked.set()

    def session(self) -> dict[str, Any]:
        """See Client: a private chat with an agent, and one tool."""
        parameters = {"type": "object"}
        tool = {"type": "function", "function": {"name": CLIENT_TOOL, "parameters": parameters}}
        session = {"tools": [tool] if self.agent == "asker" else []}
        return {"agent": self.agent, "session": session}

    def is_over(self) -> bool:
        """See Client."""
        return bool(self.end)

    def opened(self, socket: UampClient) -> None:
        """Ask, or ask again: the events have one effect."""
        self.ready.set()
        self._asked.wait(GIVE_UP_SECONDS)
        if not self.response_id:
            self.asked_at = time.monotonic()
            for event in self._events:
                socket.send_raw(json.dumps(event))

    def hear(self, socket: UampClient, frame: Frame) -> None:
        """See Client: the same call is answered the same way, however often it is asked."""
        if frame["type"] == "response.created":
            self.response_id = frame["response_id"]
        elif frame["type"] == "tool.call":
            self.calls[frame["call_id"]] = self.calls.get(frame["call_id"], 0) + 1
            self._watch(self, frame)
            socket.send("tool.result", call_id=frame["call_id"], result=ANSWER)
            return
        elif frame["type"] in TERMINAL and "seq" in frame:
            self.end = frame
        self._watch(self, frame)


class Listener(Client):
    """It reads the whole chat, until the asker has the end and the log has been sent."""

    def __init__(self, group: ServerGroup, first: int, asker: Asker) -> None:
        super().__init__(group, first, name=f"listener of {asker.tag}")
        self._asker = asker

    def session(self) -> dict[str, Any]:
        """See Client: the asker's chat."""
        return {"chat": self._asker.created["chat"], "session": {}}

    def hear(self, _socket: UampClient, frame: Frame) -> None:
        """See Client: what the asker's program is asked is not for others."""
        if frame["type"] == "tool.call":
            raise AssertionError(frame)

    def is_over(self) -> bool:
        """See Client: an answer of nothing has no message after its end."""
        ends = (frame for frame in list(self.story.log.values()) if frame["type"] in TERMINAL)
        if all(frame["response_id"] != self._asker.response_id for frame in ends):
            return False
        chats = self._group.rows("chat_app_chat", "id, last_seq")
        heads = {chat["id"]: chat["last_seq"] for chat in chats}
        return bool(self.story.after >= heads[self._asker.created["chat"]])


def new_tag(number: int) -> str:
    """Return the name of a turn, which is also its question and its journal."""
    return f"point{number}-{uuid.uuid4().hex[:6]}"
