"""`seed.py FOLDER PLAN`: write a benchmark's database; PLAN is `servers.SeedPlan` as JSON.

Creates one person with a key and money, a scripted agent, an agent with a price, an agent for each
pause between words in BENCH_DRIPS, in milliseconds (`drip-200`), and the contents of the plan.
Writes the keys and chat ids to `seed.json` in FOLDER. Runs on the code in PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import django

django.setup()

# Django has to be set up first.
from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from chat_app.models import (  # noqa: E402
    Chat,
    ChatEvent,
    Message,
    Participant,
)
from chat_app.search import index  # noqa: E402
from payments_app import services as ledger  # noqa: E402
from payments_app.models import Approval  # noqa: E402
from payments_app.money import Money  # noqa: E402
from sessions_app import models as sessions  # noqa: E402
from sessions_app.access import auth  # noqa: E402
from tests.growth.bulk_rows import ago, fill  # noqa: E402

AGENT: Final = "echo"
if TYPE_CHECKING:
    from collections.abc import Iterator

PAID_AGENT: Final = "paid-bench"
MESSAGES_A_CHAT: Final = 100
FIRST_STRANGER: Final = 1_000_000
# The text of bulk messages: short, so that indexing a million of them does not take too long.
TEXT: Final = "'Message ' || i"
PAYLOAD: Final = """'{"type": "response.done", "event_id": "e", "timestamp": 1, "response": {}}'"""


def main() -> None:
    """Write the rows and the file."""
    folder, plan = Path(sys.argv[1]), json.loads(sys.argv[2])
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
    user = User.objects.create_user("bench")
    agent = Agent.objects.create(name=AGENT, is_public=True, options={"script": "echo"})
    _make_agents(plan, user)
    chats = {count: _long_chat(user, agent, count) for count in plan["chats"]}
    if plan["rows"]:
        _fill_mass(agent, plan["rows"])
    people = [User.objects.create_user(f"member{number}") for number in range(plan["members"])]
    room, rooms = "", []
    if plan["room_size"]:
        reader = Agent.objects.get(name=plan["room_agent"])
        rooms = [
            str(_make_chat(f"Room {number}", list(members), reader, "mention").pk)
            for number, members in enumerate(_batches(people, plan["room_size"]))
        ]
    elif people:
        reader = Agent.objects.get(name=plan["room_agent"])
        joined = people if plan["have_joined"] else []
        room = str(_make_chat("Room", [user, *joined], reader, "always").pk)
    _gather_statistics()
    seed = {
        "token": auth.create_api_key(user, name="bench"),
        "chats": chats,
        "room": room,
        "rooms": rooms,
        "connected": {
            prefix: [_daemon_token(user, f"{prefix}-{number}", agents) for number in range(daemons)]
            for prefix, daemons, agents in plan["connected"]
        },
        "members": [auth.create_api_key(person, name="bench") for person in people],
    }
    (folder / "seed.json").write_text(json.dumps(seed))


def _batches(people: list[User], size: int) -> Iterator[list[User]]:
    """Yield the people of each room."""
    for start in range(0, len(people), size):
        yield people[start : start + size]


def _make_agents(plan: dict[str, Any], user: User) -> None:
    for drip in os.environ.get("BENCH_DRIPS", "").split():
        slow = {"script": "echo", "delay": int(drip) / 1000}
        Agent.objects.create(name=f"drip-{drip}", is_public=True, options=slow)
    for fields in plan["agents"]:
        agent = Agent(is_public=True, **fields)
        if agent.kind == "remote":
            # Earlier commits have other modules, and are measured without remote agents.
            from agents_app.outbound.keys import encrypted_key  # noqa: PLC0415
            from agents_app.remote.addresses import target_of  # noqa: PLC0415

            key = auth.create_api_key(user, name=agent.name)
            agent.secret = encrypted_key(key, target_of(agent.url).place)
        agent.save()
    paid = Agent.objects.create(
        name=PAID_AGENT,
        is_public=True,
        options={"script": "echo"},
        pricing={"per_answer": "0.000001", "output_per_1k": "0.00001"},
    )
    ledger.top_up(
        key="bench",
        account=ledger.account_of_user(user.pk).id,
        amount=Money.parse("1000000", "USD"),
        provider="bench",
        external_id="bench",
    )
    maximum = Money.parse("1", "USD")
    Approval.objects.create(
        user_id=user.pk, agent_id=paid.pk, asset=maximum.asset, up_to=maximum.amount
    )


def _daemon_token(user: User, name: str, count: int) -> str:
    """Create the agents of a daemon, and return the token that registers them."""
    agents = Agent.objects.bulk_create(
        [Agent(name=f"{name}-{number}", kind="connected", owner=user) for number in range(count)]
    )
    secret = sessions.ApiKey.make_secret()
    prefix, sha256 = sessions.ApiKey.split_secret(secret)
    sessions.ApiKey.objects.create(
        user=user,
        name=name,
        prefix=prefix,
        sha256=sha256,
        scopes=["agents:connect"],
        agents=[agent.pk for agent in agents],
    )
    return secret


def _long_chat(user: User, agent: Agent, count: int) -> str:
    chat = _make_chat(f"{count} messages", [user], agent, "never")
    _fill_messages(f"'{chat.pk}'", "i", str(user.pk), count, f"of_{count}_")
    Chat.objects.filter(pk=chat.pk).update(last_seq=count)
    return str(chat.pk)


def _make_chat(title: str, people: list[User], agent: Agent, trigger: str) -> Chat:
    chat = Chat.objects.create(title=title, created_by=people[0], kind="group")
    owner, *others = people
    Participant.objects.bulk_create(
        [
            Participant(chat=chat, user=owner, role="owner"),
            *(Participant(chat=chat, user=person) for person in others),
            Participant(chat=chat, agent=agent, trigger=trigger),
        ]
    )
    return chat


def _fill_messages(chat: str, seq: str, user: str, count: int, mark: str) -> None:
    """Insert messages and their log entries; `chat`, `seq` and `user` are SQL expressions."""
    fill(
        Message,
        count,
        id=f"'msg_{mark}' || i",
        chat_id=chat,
        seq=seq,
        role="'user'",
        sender_user_id=user,
        content=TEXT,
        content_items="'[]'",
        response_id="''",
        status="'completed'",
        created_at=ago(f"({count} - i) / 1000.0"),
    )
    fill(
        ChatEvent,
        count,
        chat_id=chat,
        seq=seq,
        type="'message.created'",
        response_id="''",
        payload=PAYLOAD,
    )


def _fill_mass(agent: Agent, rows: int) -> None:
    """Insert chats of other people: `rows` messages and events, half as many answers and inputs.

    Each stranger has one chat, one session and 100 messages.
    """
    people = max(1, rows // MESSAGES_A_CHAT)
    person = f"({FIRST_STRANGER} + i)"
    place = f"((i - 1) / {MESSAGES_A_CHAT} + 1)"
    fill(User, people, id=person, username="'stranger' || i", is_active="true")
    fill(
        Chat,
        people,
        id="'chat_' || i",
        kind="'session'",
        payer="'asker'",
        created_by_id=person,
        last_seq=str(MESSAGES_A_CHAT),
    )
    fill(
        Participant,
        people,
        chat_id="'chat_' || i",
        user_id=person,
        role="'owner'",
        trigger="'mention'",
    )
    fill(
        sessions.Session,
        people,
        id="'sess_' || i",
        user_id=person,
        principal=f"'user:' || {person}",
        agent_id=f"'{agent.pk}'",
        chat_id="'chat_' || i",
        status="'closed'",
        transport="'websocket'",
        closed_at=ago("i"),
    )
    _fill_messages(
        f"'chat_' || {place}",
        f"(i - 1) % {MESSAGES_A_CHAT} + 1",
        f"{FIRST_STRANGER} + {place}",
        rows,
        "mass_",
    )
    place = f"((i - 1) / {MESSAGES_A_CHAT // 2} + 1)"
    turns = min(rows // 2, people * MESSAGES_A_CHAT // 2)
    fill(
        sessions.Response,
        turns,
        id="'resp_' || i",
        chat_id=f"'chat_' || {place}",
        session_id=f"'sess_' || {place}",
        agent_id=f"'{agent.pk}'",
        message_id="'msg_mass_' || i",
        status="'completed'",
        output="'[]'",
        fence="1",
        finished_at=ago("i"),
    )
    fill(
        sessions.InboundEvent,
        turns,
        session_id=f"'sess_' || {place}",
        event_id="'event_' || i",
        sha256="'0'",
        outcome="""'{"message_id": null, "response_ids": [], "first_seq": 1}'""",
    )


def _gather_statistics() -> None:
    """Do the maintenance that the database performs some time after a bulk insert."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
            return
        cursor.execute("ANALYZE")
        # Earlier commits index with each write.
        while getattr(index, "fill", int)():
            pass
        # Rows inserted one by one leave few segments in the full-text index.
        cursor.execute("INSERT INTO chat_app_search(chat_app_search) VALUES('optimize')")


if __name__ == "__main__":
    main()
