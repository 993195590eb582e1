"""`python -m benchmarks.seed FOLDER LONG`: what a benchmark's database holds, written as JSON.

One person with a key and money, a scripted agent, one that has a price, one for each pause between
two words that BENCH_DRIPS names in milliseconds (`drip-200`), and two shared chats of 100 and LONG
messages, in which the latter always answer. FOLDER gets `seed.json` with the key and the ids of
the chats by their length.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

import django

django.setup()

# The applications can be read only now.
from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from agents_app.models import Agent  # noqa: E402
from benchmarks import AGENT, PAID_AGENT  # noqa: E402
from chat_app.log import entries  # noqa: E402
from chat_app.members.chats import create_chat  # noqa: E402
from payments_app import services as ledger  # noqa: E402
from payments_app.money import Money  # noqa: E402
from payments_app.spending import approvals  # noqa: E402
from sessions_app.access import auth  # noqa: E402

SHORT_CHAT = 100
CHUNK = 2000


def fill(chat_id: str, user: User, count: int) -> None:
    """Write messages into a chat, with their places in its log."""
    at = timezone.now()
    for start in range(0, count, CHUNK):
        events = [
            entries.message_event(
                chat_id,
                entries.NewMessage(
                    id=f"msg_{uuid.uuid4().hex}",
                    role="user",
                    at=at,
                    name=user.username,
                    content=f"Message {number} of a long chat, as people write them.",
                    sender_user_id=user.pk,
                ),
            )
            for number in range(start, min(start + CHUNK, count))
        ]
        with transaction.atomic():
            entries.append_many([entries.Append(chat_id=chat_id, events=events, at=at)])


def main() -> None:
    """Write the rows and the file."""
    folder, long_chat = Path(sys.argv[1]), int(sys.argv[2])
    user = User.objects.create_user("bench")
    agent = Agent.objects.create(name=AGENT, is_public=True, options={"script": "echo"})
    drips = [
        Agent.objects.create(
            name=f"drip-{drip}",
            is_public=True,
            options={"script": "echo", "delay": int(drip) / 1000},
        )
        for drip in os.environ.get("BENCH_DRIPS", "").split()
    ]
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
    approvals.approve(user.pk, paid.pk, Money.parse("1", "USD"))
    chats = {}
    for count in (SHORT_CHAT, long_chat):
        chat = create_chat(
            title=f"{count} messages",
            created_by_id=user.pk,
            user_ids=[user.pk],
            agents=[(agent.pk, "never"), *((drip.pk, "always") for drip in drips)],
        )
        fill(chat.pk, user, count)
        chats[count] = chat.pk
    token = auth.create_api_key(user, name="bench")
    (folder / "seed.json").write_text(json.dumps({"token": token, "chats": chats}))


if __name__ == "__main__":
    main()
