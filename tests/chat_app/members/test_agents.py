"""Agents in a chat: when they answer, what they are shown, and how they ask each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from chat_app.folding import folded
from chat_app.log.history import HistoryMessage
from chat_app.members.agents import triggers
from chat_app.members.agents.agent_mentions import agents_asked
from chat_app.members.agents.triggers import triggered, visible_messages
from chat_app.members.membership import AgentMember, agent_members
from chat_app.models import AgentMention, Chat, ChatEvent, Participant
from sessions_app.models import Response
from tests import factories
from tests.chat_app.conversation.joining import joined, refusal
from tests.client import Frame, UampClient, text_of, wait_until
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    from pytest_django import Settings


def member(trigger: str, *keywords: str, context: str = "chat", limit: int = 0) -> AgentMember:
    return AgentMember("a1", "Bot", trigger, keywords, context, limit or None)


@pytest.mark.parametrize(
    ("who", "text", "answers"),
    [
        (member("mention"), "@bot hello", True),
        (member("mention"), "mail@bot hello", False),
        (member("always"), "hello", True),
        (member("never"), "@bot hello", False),
        (member("keyword", "weather"), "The WEATHER, please", True),
        (member("keyword", "weather"), "whether weatherman", False),
        (member("keyword", "train to lyon"), "a train  to\nLyon?", True),
        (member("keyword", "c++"), "Is C++ hard?", True),
        (member("keyword", ".*"), "anything", False),
        (member("keyword", "天气"), "请问明天天气怎么样", True),
        (member("keyword", "날씨"), "오늘 날씨가 어때", True),
        (member("keyword", "bug"), "这个bug怎么修", True),
        (member("keyword", "bug"), "这个debug怎么修", False),
        (member("keyword", "weather"), "\uff57\uff45\uff41\uff54\uff48\uff45\uff52!", True),
        (member("keyword", "café"), "Un cafe\u0301 ?", True),
        (member("keyword", "strasse"), "Welche Stra\u00adße?", True),
        (member("keyword", "ai"), "用AI做。谢谢", True),
        (member("keyword", "ai"), "ขอaiช่วย", True),
        (member("keyword", "天気"), "今日の天気は。", True),
        (member("keyword", "c++"), "学c++吧", True),
        (member("keyword", "g\uff30t"), "请gpt回答", True),
        (member("keyword", "istanbul"), "\u0130STANBUL'da", True),
        (member("keyword", "\u03bf\u03b4\u03cc\u03c2"), "\u039f\u0394\u038c\u03a3!", True),
        (member("keyword", "\u00ad", "x"), "anything", False),
        (member("keyword", "ガイド"), "\uff76\uff9e\uff72\uff84\uff9eを", True),
        (member("mention"), "请@bot看一下", True),
        (member("mention"), "\uff20\uff22\uff2f\uff34 hello", True),
        (member("mention"), "请@botty看一下", False),
        (member("keyword", "weather"), "@bot hello", True),
        (member("keyword"), "weather", False),
    ],
)
def test_a_trigger_decides_by_the_text(who: AgentMember, text: str, answers: bool) -> None:  # noqa: FBT001 a column of the table
    assert bool(triggered(text, [who])) is answers


@pytest.mark.parametrize(("before", "answers"), [(16_376, True), (16_384, False)])
def test_a_keyword_is_read_at_the_beginning_of_a_long_text(before: int, *, answers: bool) -> None:
    text = f"{'x ' * (before // 2)}weather {'x ' * 100}"
    assert bool(triggered(text, [member("keyword", "weather")])) is answers


@pytest.mark.parametrize(("word", "answers"), [("weather", True), ("weathervane", False)])
def test_a_longer_word_does_not_match_a_keyword(word: str, *, answers: bool) -> None:
    text = f"{' ' * (16_384 - len('weather'))}{word} {'x ' * 100}"
    assert bool(triggered(text, [member("keyword", "weather")])) is answers


def test_a_keyword_between_letters_without_spaces_is_read_to_the_end_of_the_beginning() -> None:
    text = f"{'天' * (16_384 - 2)}天气{'天' * 100}"
    assert triggered(text, [member("keyword", "天气")])


def test_a_text_is_folded_once_for_all_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def fold(text: str) -> str:
        texts.append(text)
        return folded(text)

    monkeypatch.setattr(triggers, "folded", fold)
    text = "Wie wird das Wetter in Zürich?"
    members = [member("keyword", f"word{n}", context="addressed") for n in range(20)]
    assert triggered(text, members) == []
    for each in members:
        assert len(visible_messages(each, [history_message(text), history_message("no")])) == 1
    assert texts.count(text) == 1


def history_message(text: str, agent_id: str | None = None) -> HistoryMessage:
    return HistoryMessage(
        role="assistant" if agent_id else "user",
        content=text,
        content_items=(),
        name=agent_id or "ada",
        agent_id=agent_id,
    )


def test_a_scope_decides_what_an_agent_is_shown() -> None:
    messages = [
        history_message("hello all"),
        history_message("@bot one"),
        history_message("1", "a1"),
        history_message("@other two"),
        history_message("see @bot", "a2"),
        history_message("no", "a2"),
        history_message("and?"),
    ]
    texts = [message.content for message in messages]

    def texts_shown(context: str, limit: int = 0) -> list[str]:
        who = member("mention", context=context, limit=limit)
        return [message.content for message in visible_messages(who, messages)]

    assert texts_shown("chat") == texts
    assert texts_shown("last", 2) == texts[-2:]
    assert texts_shown("last", 1000) == texts
    assert texts_shown("addressed") == ["@bot one", "1", "see @bot", "and?"]


def place_of(chat: Chat, name: str) -> int:
    return Participant.objects.get(chat=chat, agent__name=name).pk


@pytest.mark.any_database
def test_quiet_agents_give_no_answer_on_any_session(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    asking = joined(dial, alice, chat)
    direct = joined(dial, bob, chat, agent="echo")
    asking.send("chat.update", agents_quiet=True)
    for client in (asking, direct):
        assert client.until("chat.updated")[-1]["agents_quiet"] is True
    for client in (asking, direct):
        client.ask("@echo hello")
        stopped = client.until("agent.stopped")[-1]
        assert (stopped["agent"], stopped["reason"]) == ("echo", "quiet")
        for other in (asking, direct):
            other.settle()
        client.send("response.create")
        assert refusal(client) == "agent_not_found"
    assert not Response.objects.filter(chat=chat).exists()
    asking.send("chat.update", agents_quiet=False)
    asking.until("chat.updated")
    assert text_of(asking.answer("@echo again")) == "again"


def two_agents(alice: Person, first: str = "ping", second: str = "pong") -> Chat:
    """Return a chat with two agents that ask each other in each answer."""
    quick_agent(first, "asker", asks=[second], says="Your turn.")
    quick_agent(second, "asker", asks=[first], says="No, yours.")
    return shared_chat(alice, agents=(first, second))


def until_stopped(client: UampClient) -> tuple[list[str], Frame]:
    """Return the agents that answered in their order, and the entry that ended it."""
    frames = client.until("agent.stopped")
    names = [frame["agent"] for frame in frames if frame["type"] == "response.created"]
    return names, frames[-1]


@pytest.mark.any_database
def test_a_loop_of_agents_stops_at_the_hops_and_says_why(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = two_agents(alice)
    client = joined(dial, alice, chat)
    client.ask("@ping begin")
    names, stopped = until_stopped(client)
    assert names == ["ping", "pong", "ping", "pong", "ping"]
    assert (stopped["reason"], stopped["agent"], stopped["mentioned_by"]) == (
        "hops", "pong", "ping",
    )  # fmt: skip
    assert "4 times in a row" in stopped["message"]
    # It is an entry of the log: who comes later reads it too.
    assert ChatEvent.objects.get(chat=chat, type="agent.stopped").seq == stopped["seq"]
    assert Response.objects.filter(chat=chat).count() == len(names)
    # With no hops agents do not ask each other, and nothing has to be said about it.
    client.send("chat.update", agent_hops=0)
    client.until("chat.updated")
    client.answer("@ping begin")
    client.settle()
    assert Response.objects.filter(chat=chat).count() == len(names) + 1
    assert ChatEvent.objects.filter(chat=chat, type="agent.stopped").count() == 1


@pytest.mark.any_database
def test_the_pair_window_stops_two_agents_in_a_longer_chain(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_AGENT_PAIR_MENTIONS = 2
    chat = two_agents(alice, "tick", "tock")
    client = joined(dial, alice, chat)
    client.ask("@tick begin")
    names, stopped = until_stopped(client)
    assert names == ["tick", "tock", "tick"]
    assert stopped["reason"] == "pair"
    # The window is of the two, whichever of them asks.
    client.ask("@tock begin")
    names, stopped = until_stopped(client)
    assert (names, stopped["reason"]) == (["tock"], "pair")
    AgentMention.objects.update(created_at=chat.created_at.replace(year=2000))
    client.ask("@tock again")
    assert until_stopped(client)[0] == ["tock", "tick", "tock"]


@pytest.mark.django_db
def test_an_agent_asks_no_other_one_once_the_agents_are_quiet() -> None:
    chat = factories.chat(factories.user(), factories.agent("ping"), factories.agent("pong"))
    ping = next(member for member in agent_members(chat.pk) if member.name == "ping")

    def names_asked() -> list[str]:
        members = agents_asked(
            chat.pk, by=ping, text="@pong your turn", hops=0, but=(), message_id="msg_1"
        )
        return [member.name for member in members]

    assert names_asked() == ["pong"]
    # They became so while the answer was given.
    Chat.objects.filter(pk=chat.pk).update(agents_quiet=True)
    assert names_asked() == []
    entry = ChatEvent.objects.get(chat=chat, type="agent.stopped")
    assert (entry.payload["agent"], entry.payload["reason"]) == ("pong", "quiet")


@pytest.mark.any_database
def test_an_agent_answers_another_one_unless_it_was_asked_already_or_never_answers(
    dial: Dial, alice: Person
) -> None:
    quick_agent("author", "asker", asks=["critic"], says="see `@echo`\n> @slow")
    quick_agent("critic", "echo")
    chat = shared_chat(alice, agents=("author", "critic", "echo", "slow"))
    client = joined(dial, alice, chat)
    client.ask("@author write")
    frames = client.until("response.done")
    frames += client.until("response.done")
    names = [frame["agent"] for frame in frames if frame["type"] == "response.created"]
    # Code and quotes mention no one; the critic is shown the author's words as a question.
    assert names == ["author", "critic"]
    client.settle()
    client.ask("@author @critic both")
    for _ in range(2):
        client.until("response.done")
    client.settle()
    assert Response.objects.filter(chat=chat).count() == 4
    client.send("participant.update", participant_id=place_of(chat, "critic"), trigger="never")
    client.until("participant.updated")
    client.ask("@author alone")
    client.until("response.done")
    client.settle()
    wait_until(lambda: Response.objects.filter(chat=chat, finished_at__isnull=True).count() == 0)
    assert Response.objects.filter(chat=chat).count() == 5


@pytest.mark.any_database
def test_an_agent_is_shown_what_its_scope_says(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo",))
    client = joined(dial, alice, chat)
    place = place_of(chat, "echo")
    client.send("participant.update", participant_id=place, trigger="keyword")
    assert refusal(client) == "invalid_event"
    client.send(
        "participant.update", participant_id=place, trigger="keyword", keywords=["repeat"],
        context="last", context_messages=1,
    )  # fmt: skip
    changed = client.until("participant.updated")[-1]["participant"]
    assert (changed["trigger"], changed["keywords"]) == ("keyword", ["repeat"])
    assert (changed["context"], changed["context_messages"]) == ("last", 1)
    client.ask("not for it")
    client.until("message.created")
    assert text_of(client.answer("please repeat this")) == "please repeat this"
    client.settle()
    assert Response.objects.filter(chat=chat).count() == 1


def test_what_a_removed_agent_answers_is_stopped_by_who_removed_it(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    quick_agent("teller", "echo", delay=0.05)
    chat = shared_chat(alice, bob, agents=("teller", "echo"))
    asker = joined(dial, bob, chat)
    asker.ask("@teller " + "word " * 400)
    asker.until("response.delta")
    other = shared_chat(bob, agents=("teller",))
    elsewhere = joined(dial, bob, other)
    elsewhere.ask("@teller " + "word " * 60)

    place = Participant.objects.get(chat=chat, agent__name="teller").pk
    path = f"/api/v1/chats/{chat.pk}/participants/{place}"
    assert web.delete(path, headers=alice.headers).status_code == httpx.codes.NO_CONTENT

    cancelled = asker.until("response.cancelled")[-1]
    assert cancelled["username"] == alice.user.get_username()
    assert cancelled["partial_output"][0]["text"].startswith("word word")
    assert text_of(elsewhere.until("response.done")).count("word") == 60
