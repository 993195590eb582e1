"""A chat of alice, bob and agents that answer when mentioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.journeys.product import Product

TEAM = """
from django.contrib.auth.models import User
from agents_app.models import Agent
from chat_app.members.chats import create_chat
people = list(User.objects.filter(username__in=["alice", "bob"]))
made = [Agent.objects.create(name=name, is_public=True, options=options)
    for name, options in {agents!r}]
chat = create_chat(title={title!r}, created_by_id=people[0].pk,
    user_ids=[person.pk for person in people], agents=[(agent.pk, "mention") for agent in made])
print("CHAT", chat.pk)
"""


def chat_of(deployment: Product, title: str, **agents: dict[str, object]) -> str:
    """Create a chat with alice, bob and agents that answer when mentioned."""
    printed = deployment.run(TEAM.format(title=title, agents=list(agents.items())))
    return printed.split("CHAT ")[1].split()[0]
