"""Daemons of the kill matrix: they answer slowly, are killed or lose their server, come back."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from tests.client import Frame, UampClient
from tests.faults.kill_clients import AGAIN_SECONDS, LOST
from tests.faults.kill_money import MONEY, PRICES
from tests.faults.kill_script import WORD_PAUSE

if TYPE_CHECKING:
    from tests.faults.kill_servers import ServerGroup

AGENT: Final = "dialler"
TOOL: Final = "tally"
"""A long tool of the agent's row, which the daemon calls in every second turn."""
ANSWER: Final = " ".join(f"word{number}" for number in range(30)) + " end."
"""What each daemon says to everything."""
PREPARE: Final = f"""
import django
django.setup()
from django.contrib.auth.models import User
from agents_app.models import Agent
from agents_app.rest.rights import ALL
from payments_app.money import Money
from payments_app.spending import approvals
from sessions_app.access import connect_tokens
owner = User.objects.create_user("owner")
agent, made = connect_tokens.issue(owner.pk, {AGENT!r}, by=ALL)
row = Agent.objects.get(pk=agent.id)
row.is_public, row.pricing, row.tools = True, {PRICES!r}, [{TOOL!r}]
row.save()
approvals.approve(User.objects.get(username="ada").pk, row.pk, Money.parse({MONEY!r}))
print(made.secret)
"""


class RestlessDaemon(threading.Thread):
    """One daemon: registered wherever a server lives, it answers each turn, one at a time.

    `kill` cuts its socket without a word, as the end of its process does.
    """

    def __init__(self, group: ServerGroup, first: int, token: str) -> None:
        super().__init__(name=f"daemon {first}", daemon=True)
        self.server = first
        self.registered = threading.Event()
        self._group, self._token = group, token
        self._socket: UampClient | None = None
        self._is_over = False
        self._paused_until = 0.0
        self._count = 0
        self._next: deque[Frame] = deque()

    def run(self) -> None:
        """Register and answer, again and again."""
        while not self._is_over:
            try:
                self._connection()
            except (*LOST, TimeoutError, AssertionError):
                self.registered.clear()
                self.server = (self.server + 1) % len(self._group.ports)
            time.sleep(max(AGAIN_SECONDS, self._paused_until - time.monotonic()))

    def stop(self) -> None:
        """End for good."""
        self._is_over = True
        self.kill(0.0)

    def kill(self, pause: float) -> None:
        """Lose the socket at once; come back after a pause."""
        self._paused_until = time.monotonic() + pause
        if self._socket is not None:
            self._socket.cut()

    def _connection(self) -> None:
        url = f"ws://127.0.0.1:{self._group.ports[self.server]}/ws?token={self._token}"
        self._next.clear()
        with UampClient(url) as socket:
            self._socket = socket
            session = {"agent": AGENT, "token": self._token}
            socket.send("session.create", session=session)
            socket.until("session.created", timeout=10)
            self.registered.set()
            while not self._is_over:
                frame = self._next.popleft() if self._next else self._received(socket)
                if frame.get("type") == "input.text":
                    self._answer(socket, frame)

    def _received(self, socket: UampClient) -> Frame:
        try:
            return socket.receive(1.0)
        except TimeoutError:
            return {}

    def _answer(self, socket: UampClient, turn: Frame) -> None:
        session_id = turn["session_id"]
        self._count += 1
        if self._count % 2 and not self._has_result(socket, session_id):
            return
        words = ANSWER.split(" ")
        for number, word in enumerate(words):
            text = word if number == len(words) - 1 else f"{word} "
            delta = {"type": "text", "text": text}
            socket.send("response.delta", session_id=session_id, delta=delta)
            time.sleep(WORD_PAUSE)
        socket.send("response.done", session_id=session_id)

    def _has_result(self, socket: UampClient, session_id: str) -> bool:
        """Call the tool and wait for its result; return False if the turn ends before."""
        arguments = json.dumps({"tag": session_id})
        call = {"call_id": f"call of {session_id}", "name": TOOL, "arguments": arguments}
        socket.send("tool.call", session_id=session_id, **call)
        while not self._is_over:
            frame = self._received(socket)
            if frame.get("type") == "input.text":
                self._next.append(frame)
            elif frame.get("session_id") == session_id:
                return bool(frame["type"] == "tool.result")
        return False
