"""Chats, sessions and turns for the tests of the turn store, with ids and times that repeat."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User

import uamp
from agents_app.models import Agent
from chat_app.log.entries import NewEvent, NewMessage, message_event
from chat_app.models import (
    Chat,
    ChatEvent,
    Content,
    ContentUse,
    Message,
    MessageMention,
    MessageThread,
    Participant,
    ThreadFollower,
)
from sessions_app.models import InboundEvent, PendingInput, Response, Session, ToolCall
from sessions_app.store.records import Finish, NewResponse, Start
from uamp import SessionState

if TYPE_CHECKING:
    from django.db.models import Model

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
CONTENT_ID = "00000000-0000-4000-8000-000000000001"
CHATS = ("chat_a", "chat_b", "chat_c")
MEMBER, STRANGER = 101, 102
RARELY = 0.08


def build_world() -> None:
    """Write three chats with one member and two agents, sessions open and closed, one content."""
    for pk in (MEMBER, STRANGER):
        User.objects.create(pk=pk, username=f"user{pk}", date_joined=AT)
    for name in ("first", "second"):
        Agent.objects.create(pk=f"agent_{name}", name=name, created_at=AT)
    for chat_id in CHATS:
        Chat.objects.create(pk=chat_id, epoch="e", created_at=AT, latest_at=AT)
        Participant.objects.create(chat_id=chat_id, user_id=MEMBER, joined_at=AT)
        for status in [state.value for state in SessionState]:
            Session.objects.create(
                pk=f"{chat_id}_{status}",
                chat_id=chat_id,
                status=status,
                principal="p",
                transport="batch",
                uamp_version="1.0",
                created_at=AT,
            )
    Content.objects.create(pk=CONTENT_ID, size_bytes=1, owner_id=MEMBER, created_at=AT)
    for pk in range(1, 5):
        PendingInput.objects.create(
            pk=pk, session_id="chat_a_active", event_id=str(pk), payload={}, created_at=AT
        )


def add_roots() -> None:
    """Write a message in each chat before its log, to which random turns reply."""
    for chat_id in CHATS:
        Message.objects.create(
            pk=f"root_{chat_id}", chat_id=chat_id, seq=0, role="user", created_at=AT
        )


def clear_world() -> None:
    """Remove everything that `build_world` and turns wrote."""
    for model in (Chat, User, Agent):
        model._default_manager.all().delete()


def rows() -> dict[str, list[dict[str, Any]]]:
    """Return every field of every row that a turn can touch, but for keys that count up."""
    tables: dict[type[Model], tuple[str, ...]] = {
        Chat: ("pk",),
        Message: ("pk",),
        MessageThread: ("pk",),
        ThreadFollower: ("thread_id", "user_id"),
        MessageMention: ("message_id", "user_id"),
        ChatEvent: ("chat_id", "seq"),
        ContentUse: ("chat_id", "content_id"),
        InboundEvent: ("session_id", "event_id"),
        Response: ("pk",),
        PendingInput: ("pk",),
        ToolCall: ("call_id",),
    }
    counted = {ChatEvent, ContentUse, InboundEvent, MessageMention, ThreadFollower, ToolCall}
    return {
        model.__name__: [
            {name: value for name, value in row.items() if name != "id" or model not in counted}
            for row in model._default_manager.order_by(*order).values()
        ]
        for model, order in tables.items()
    }


def start(chat_id: str = "chat_a", **fields: Any) -> Start:
    """Return a turn with one message and one response, by the member of the chat."""
    number = uuid.uuid4().hex[:24]
    message = new_message(f"msg_{number}", sender_user_id=MEMBER)
    defaults: dict[str, Any] = {
        "session_id": f"{chat_id}_active",
        "chat_id": chat_id,
        "user_id": MEMBER,
        "event_id": f"event_{number}",
        "sha256": "0" * 64,
        "message": message,
        "message_event": message_event(chat_id, message),
        "responses": [new_response(f"resp_{number}")],
        "process": "tests",
        "lease_until": AT + timedelta(seconds=15),
        "at": AT,
    }
    return Start(**{**defaults, **fields})


def finish(of: Start, **fields: Any) -> Finish:
    """Return the end of a turn's first response, with one message."""
    response_id = of.responses[0].id
    message = new_message(
        f"end_{response_id}",
        role="assistant",
        sender_agent_id="agent_first",
        response_id=response_id,
    )
    defaults: dict[str, Any] = {
        "chat_id": of.chat_id,
        "response_id": response_id,
        "fence": 1,
        "status": "completed",
        "event": log_event("response.done", response_id),
        "message": message,
        "message_event": message_event(of.chat_id, message),
        "text": "Hello",
        "output": [{"type": "text", "text": "Hello"}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
        "at": AT + timedelta(seconds=1),
    }
    return Finish(**{**defaults, **fields})


def new_message(message_id: str, **fields: Any) -> NewMessage:
    """Return a message of a user."""
    defaults = {"role": "user", "at": AT, "content": "Hello", "transport": "batch"}
    defaults["reply_to"] = "msg_before" if message_id.startswith("msg_") else None
    defaults["version_of"] = None if message_id.startswith("msg_") else "msg_first"
    return NewMessage(**{"id": message_id, **defaults, **fields})


def new_response(response_id: str, **fields: Any) -> NewResponse:
    """Return a response of the first agent."""
    event = log_event("response.created", response_id)
    defaults = {"id": response_id, "agent_id": "agent_first", "request": {}, "event": event}
    return NewResponse(**{**defaults, **fields})


def log_event(event_type: str, response_id: str) -> NewEvent:
    """Return a log entry of a response, with an id of its own."""
    payload = {
        "type": event_type,
        "event_id": str(uuid.uuid4()),
        "timestamp": 1.5,
        "response_id": response_id,
    }
    return NewEvent(type=event_type, payload=payload, response_id=response_id)


@dataclass
class RandomTurns:
    """Batches of turns as careless clients, slow processes and broken lines would send them."""

    seed: int
    starts: list[Start] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 chance for tests

    def batches(self, count: int) -> list[list[Start] | list[Finish]]:
        """Return batches, of starts and of finishes by turns."""
        return [
            self._finishes() if number % 2 else [self._start() for _ in range(self._size())]
            for number in range(count)
        ]

    def _size(self) -> int:
        return self._random.randint(1, 6)

    def _rarely(self) -> bool:
        return self._random.random() < RARELY

    def _often(self, usual: Any, *rare: Any) -> Any:
        return self._random.choice(rare) if self._rarely() else usual

    def _start(self) -> Start:
        chat_id = self._random.choice(CHATS)
        if self.starts and self._random.random() < 0.15:
            again = self._random.choice(self.starts)
            return self._random.choice(
                [
                    again,
                    start(again.chat_id, event_id=again.event_id),
                    start(again.chat_id, event_id=again.event_id, sha256="1" * 64),
                    start(again.chat_id, message=again.message, message_event=again.message_event),
                ]
            )
        number = uuid.uuid4().hex[:20]
        message = new_message(
            f"msg_{number}",
            sender_user_id=self._often(MEMBER, None, 999),
            name="Ada",
            content=self._often("Hello", "", "ß€🜁 \"'\\\n%s ?1 :id"),
            content_items=self._often((), (uamp.TextContent(text="ü"),)),
            **self._in_thread(chat_id),
        )
        says = not self._rarely()
        new = start(
            chat_id,
            session_id=self._often(f"{chat_id}_active", f"{chat_id}_closed", "missing"),
            user_id=self._often(MEMBER, STRANGER, None),
            event_id=f"event_{number}",
            message=message if says else None,
            message_event=message_event(chat_id, message) if says else None,
            responses=[
                new_response(
                    f"resp_{number}{i}",
                    agent_id=self._often("agent_first", "agent_second", "agent_missing"),
                    request=self._often({}, {"temperature": 0.1, "tools": [None, 1, "ß"]}),
                )
                for i in range(self._often(1, 2, 2 if not says else 0))
            ],
            content_ids=self._often((), (CONTENT_ID,)),
            pending_input_ids=self._often((), (self._random.randint(1, 4),)),
            at=AT + timedelta(microseconds=self._random.choice([0, 1, 321099])),
        )
        self.starts.append(new)
        return new

    def _in_thread(self, chat_id: str) -> dict[str, Any]:
        return {
            "thread": self._often(None, f"root_{chat_id}"),
            "also_in_chat": self._often(False, True),  # noqa: FBT003 values to choose from
        }

    def _finishes(self) -> list[Finish]:
        ended = [s for s in self.starts if s.responses]
        return [self._finish(self._random.choice(ended)) for _ in range(self._size()) if ended]

    def _finish(self, of: Start) -> Finish:
        says = not self._rarely()
        fields: dict[str, Any] = {} if says else {"message": None, "message_event": None}
        if says and of.message is not None and of.message.thread is not None:
            message = new_message(
                f"end_{of.responses[0].id}",
                role="assistant",
                sender_agent_id="agent_first",
                response_id=of.responses[0].id,
                version_of=None,
                **self._in_thread(of.chat_id),
            )
            fields = {"message": message, "message_event": message_event(of.chat_id, message)}
        return finish(
            of,
            fence=self._often(1, 2),
            status=self._often("completed", "failed", "cancelled"),
            text=self._often("Hello", ""),
            usage=self._often({"cost": 0.25}, None),
            error=self._often(None, {"code": "x", "details": {"a": [1, 2.5]}}),
            error_cause=self._often(None, "a model's own words"),
            inferences=self._often(None, [{"number": 1, "model": "ß", "at": 1}]),
            content_ids=self._often((), (CONTENT_ID,)),
            has_tool_calls=self._rarely(),
            **fields,
        )
