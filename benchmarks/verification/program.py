"""`program.py FOLDER MESSAGES`: write a chat of signed answers, its export and the server's keys.

The rows are those that the turn store writes, inserted in bulk. Prints the id of the chat; the
files in FOLDER are named after the number of messages. Runs on a prepared database.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import django

django.setup()

# Django has to be set up first.
import msgspec  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from benchmarks import AGENT  # noqa: E402
from chat_app.export.formats import ndjson  # noqa: E402
from chat_app.export.log_lines import log_lines  # noqa: E402
from chat_app.export.pages import pages_for_staff  # noqa: E402
from chat_app.log.checkpoints import checkpoint_of  # noqa: E402
from chat_app.log.entries import NewEvent, NewMessage, message_event  # noqa: E402
from chat_app.log_tree.growth import grow  # noqa: E402
from chat_app.models import Chat, ChatEvent, Message, Participant  # noqa: E402
from sessions_app.models import Response, Session  # noqa: E402
from sessions_app.store.records import Finish, NewResponse, Start  # noqa: E402
from sessions_app.store.rows import event_rows, message_row  # noqa: E402
from signing_app.owner_keys import signing_key  # noqa: E402
from signing_app.published import all_keys  # noqa: E402
from uamp import signatures  # noqa: E402
from uamp.digital_source import AI_MADE  # noqa: E402
from uamp.logs.chain import chain_hash, chain_start, entry_digest, payload_digest  # noqa: E402

if TYPE_CHECKING:
    from datetime import datetime

BATCH: Final = 1000
QUESTION: Final = "Which of the lakes in the north freezes first, and in which month?"
ANSWER: Final = "The small ones freeze first, in most years at the beginning of December. " * 4


class Writer:
    """Writes turns of one person and one agent into one chat."""

    def __init__(self) -> None:
        self.user = User.objects.get(username="bench")
        self.agent = Agent.objects.get(name=AGENT)
        self.chat = Chat.objects.create(title="Lakes", created_by=self.user)
        Participant.objects.create(chat=self.chat, user=self.user, role="owner")
        self.session = Session.objects.create(
            chat=self.chat, user=self.user, principal=f"user:{self.user.pk}", transport="websocket"
        )
        self.key = signing_key(signatures.agent_owner(self.agent.pk))
        self._seq, self._hash = 0, chain_start(self.chat.pk, 0)

    def write(self, numbers: range) -> None:
        """Write the turns with these numbers."""
        now = timezone.now()
        events: list[ChatEvent] = []
        messages: list[Message] = []
        responses: list[Response] = []
        for number in numbers:
            start = self._start(number, now)
            finish = self._finish(start, now + timedelta(seconds=1))
            for turn in (start, finish):
                for new in event_rows(turn):
                    events.append(self._entry(new, turn.at))
                    if turn.message is not None and new is turn.message_event:
                        row = message_row(turn.message)
                        messages.append(Message(chat=self.chat, seq=self._seq, **row))
            responses.append(
                Response(
                    id=finish.response_id,
                    chat=self.chat,
                    session=self.session,
                    agent=self.agent,
                    status=finish.status,
                    text=finish.text,
                    output=finish.output,
                    fence=1,
                    finished_at=finish.at,
                )
            )
        with transaction.atomic():
            Message.objects.bulk_create(messages)
            Response.objects.bulk_create(responses)
            ChatEvent.objects.bulk_create(events)
            Chat.objects.filter(pk=self.chat.pk).update(
                last_seq=self._seq, chain_seq=self._seq, chain_hash=self._hash
            )

    def _entry(self, new: NewEvent, at: datetime) -> ChatEvent:
        """Return the next entry of the log, which continues its chain."""
        self._seq += 1
        digest = entry_digest(new.type, new.response_id, at, payload_digest(new.payload))
        self._hash = chain_hash(self._hash, self._seq, digest)
        return ChatEvent(
            chat=self.chat,
            seq=self._seq,
            type=new.type,
            response_id=new.response_id,
            payload=new.payload,
            created_at=at,
            chain_hash=self._hash,
        )

    def _start(self, number: int, now: datetime) -> Start:
        mark = f"{self.chat.pk}_{number}".removeprefix("chat_")[-32:]
        question = NewMessage(
            id=f"msg_{mark}q",
            role="user",
            at=now,
            sender_user_id=self.user.pk,
            name="bench",
            content=f"{QUESTION} {number}",
            transport="websocket",
        )
        response = NewResponse(
            id=f"resp_{mark}",
            agent_id=self.agent.pk,
            request={},
            event=_event("response.created", f"resp_{mark}"),
        )
        return Start(
            session_id=self.session.pk,
            chat_id=self.chat.pk,
            user_id=self.user.pk,
            event_id=f"event_{number}",
            sha256="0" * 64,
            message=question,
            message_event=message_event(self.chat.pk, question),
            responses=[response],
            process="benchmark",
            lease_until=now + timedelta(hours=1),
            at=now,
        )

    def _finish(self, start: Start, now: datetime) -> Finish:
        response_id, question = start.responses[0].id, start.message
        text = f"{ANSWER}{response_id}"
        answer = NewMessage(
            id=f"msg_{response_id.removeprefix('resp_')}a",
            role="assistant",
            at=now,
            sender_agent_id=self.agent.pk,
            name=self.agent.name,
            content=text,
            response_id=response_id,
            transport="websocket",
        )
        output: list[dict[str, Any]] = [{"type": "text", "text": text}]
        request_message = (
            {"id": question.id, "role": "user", "content": question.content} if question else {}
        )
        claims = signatures.AnswerClaims(
            iss=settings.UAMP_ISSUER,
            sub=self.agent.pk,
            agent=self.agent.name,
            chat_id=self.chat.pk,
            jti=response_id,
            iat=int(now.timestamp()),
            response_hash=signatures.text_sha256(text),
            output_hash=signatures.sha256_of(output),
            request_hash=signatures.sha256_of(signatures.request_of(request_message)),
            message_id=answer.id,
            request_id=request_message.get("id"),
            price=None,
            status="completed",
            digital_source_type=AI_MADE,
            usage_hash=signatures.sha256_of(None),
        )
        signature = self.key.sign(msgspec.to_builtins(claims), typ=signatures.TYPE)
        response = {"id": response_id, "status": "completed", "output": output, "usage": None}
        event = _event("response.done", response_id, response=response, signature=signature)
        return Finish(
            chat_id=self.chat.pk,
            response_id=response_id,
            fence=1,
            status="completed",
            event=event,
            message=answer,
            message_event=message_event(self.chat.pk, answer),
            text=text,
            output=output,
            usage=None,
            at=now,
        )


def _event(kind: str, response_id: str, **members: Any) -> NewEvent:
    payload = {"type": kind, "event_id": f"{kind}.{response_id}", "response_id": response_id}
    return NewEvent(type=kind, payload={**payload, **members}, response_id=response_id)


def main() -> None:
    """Write the chat and the files."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    writer = Writer()
    turns = count // 2
    for first in range(0, turns, BATCH):
        writer.write(range(first, min(first + BATCH, turns)))
    checkpoint_of(writer.chat.pk)
    grow(timezone.now())
    chat = Chat.objects.get(pk=writer.chat.pk)
    with (folder / f"{count}.ndjson").open("wb") as file:
        file.writelines(ndjson(chat, pages_for_staff(chat), log_lines(chat.pk, None)))
    (folder / f"{count}.keys.json").write_text(json.dumps(all_keys()))
    print(chat.pk)


if __name__ == "__main__":
    main()
