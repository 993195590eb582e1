"""No protocol signs an address of a file for a client that may not read the file.

A client names a file of others by its id, in every place of a request that takes a medium, and
opens each address that it is shown without a credential.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
from websockets.sync.client import connect

from chat_app.contents import reading_rights
from tests import factories
from tests.client import new_event
from tests.gateway_app.acp.socket_client import AcpClient
from tests.gateway_app.ag_ui.runs import run_input
from tests.live_server import Person, shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.conftest import ServerAddress

AGENT: Final = "/agents/echo"
ADDRESS: Final = re.compile(r"/api/content/[0-9a-f-]{36}\?[^\"'\\\s)<>]+")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A client's server, its credential, and the file that it names."""

    server: ServerAddress
    web: httpx.Client
    headers: Mapping[str, str]
    file: str

    @property
    def path(self) -> str:
        """The address of the file, without a signature."""
        return f"/api/content/{self.file}"

    def post(self, path: str, body: Any) -> Any:
        """Post a body with the client's credential."""
        return self.web.post(path, json=body, headers=dict(self.headers))

    def get(self, path: str) -> str:
        """Return the client's view of a path."""
        return self.web.get(path, headers=dict(self.headers)).text


def responses(at: Place, part: Any, *, in_history: bool) -> str:
    message: dict[str, Any] = {"role": "user", "content": [part]}
    later = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "last"}]
    answer = at.post("/v1/responses", {"model": "echo", "input": [message, *later * in_history]})
    path = f"/v1/responses/{answer.json().get('id')}"
    return str(answer.text) + at.get(f"{path}/input_items?order=asc") + at.get(path)


def completions(at: Place, part: Any, *, in_history: bool) -> str:
    later = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "last"}]
    messages = [{"role": "user", "content": [part]}, *later * in_history]
    body = {"model": "echo", "messages": messages}
    return str(at.post("/v1/chat/completions", body).text)


def ag_ui(at: Place, part: Any, *, in_history: bool) -> str:
    later = [
        {"id": "2", "role": "assistant", "content": "ok"},
        {"id": "3", "role": "user", "content": "last"},
    ]
    body = run_input("x", thread=uuid.uuid4().hex)
    body["messages"] = [{"id": "1", "role": "user", "content": [part]}, *later * in_history]
    answer = at.post(f"{AGENT}/agui", body).text
    return str(answer + at.post(f"{AGENT}/agui/connect", {**body, "messages": []}).text)


def a2a(at: Place, part: Any, *, in_history: bool) -> str:
    del in_history  # A task begins with one message.
    message = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return str(at.post(f"{AGENT}/a2a", call).text)


def uamp(at: Place, part: Any, *, in_history: bool) -> str:
    create = new_event("session.create", uamp_version="1.0", session={}, agent="echo")
    input_event = new_event("input.image", image=part)
    create_response = new_event("response.create")
    if in_history:
        earlier = [{"role": "user", "content_items": [{"type": "image", "image": part}]}]
        input_event = new_event("input.text", text="last")
        create_response["response"] = {"messages": earlier}
    answer = at.post("/uamp", [create, input_event, create_response])
    session_id = answer.json()[0].get("session_id")
    url = f"{at.server.ws}{AGENT}/acp"
    with connect(url, additional_headers=dict(at.headers), proxy=None) as socket:
        client = AcpClient(socket)
        client.call("initialize", protocolVersion=1)
        loaded = client.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])
        return f"{answer.text} {client.seen} {loaded}"


# A way to send a medium, and the forms in which it takes a reference to a file of this server.
SENDERS: Final[dict[str, tuple[Callable[..., str], Callable[[Place], list[Any]]]]] = {
    "Responses": (
        responses,
        lambda at: [
            {"type": "input_file", "file_id": at.file},
            {"type": "input_file", "file_url": f"{at.server.http}{at.path}"},
            {"type": "input_image", "file_id": at.file},
            {"type": "input_image", "image_url": at.path},
        ],
    ),
    "Completions": (
        completions,
        lambda at: [
            {"type": "image_url", "image_url": {"url": at.path}},
            {"type": "file", "file": {"file_id": at.file}},
        ],
    ),
    "AG-UI": (
        ag_ui,
        lambda at: [
            {"type": "binary", "mimeType": "image/png", "id": at.file, "url": at.path},
            {"type": "binary", "mimeType": "image/png", "url": at.path},
            {"type": "binary", "mimeType": "image/png", "id": at.file},
        ],
    ),
    "A2A": (a2a, lambda at: [{"url": at.path, "mediaType": "image/png"}]),
    "UAMP, loaded over ACP": (uamp, lambda at: [{"url": at.path}]),
}


def a_visitor(_chat: Chat, _who: Person) -> Mapping[str, str]:
    return {}


def a_stranger(_chat: Chat, _who: Person) -> Mapping[str, str]:
    return key_of(Person(factories.user("stranger"), "")).headers


def a_removed_member(chat: Chat, who: Person) -> Mapping[str, str]:
    chat.participants.filter(user=who.user).update(left_at=chat.created_at)
    return who.headers


def a_key_of_another_chat(_chat: Chat, who: Person) -> Mapping[str, str]:
    other = shared_chat(who)
    return {**key_of(who, chats=[other.pk]).headers, "X-Chat-Id": other.pk}


@pytest.fixture
def chat_and_file(
    web: httpx.Client, alice: Person, bob: Person, settings: Settings
) -> tuple[Chat, str]:
    """Return a chat of Alice and Bob, and the id of a file of Bob's that it alone shows."""
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    chat, content = shared_chat(bob, alice), factories.content(bob.user)
    reading_rights.use(chat.pk, [str(content.pk)])
    return chat, str(content.pk)


def opened(place: Place, sender: str) -> list[int]:
    """Send the file in every form; return the status of each address that the client is shown."""
    send, forms = SENDERS[sender]
    texts = [
        send(place, part, in_history=in_history)
        for part in forms(place)
        for in_history in (True, False)
    ]
    urls = {url for text in texts for url in ADDRESS.findall(text) if place.file in url}
    return [place.web.get(url.replace("&amp;", "&")).status_code for url in urls]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("client", [a_visitor, a_stranger, a_removed_member, a_key_of_another_chat])
def test_no_protocol_signs_what_its_client_may_not_read(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    chat_and_file: tuple[Chat, str],
    client: Callable[[Chat, Person], Mapping[str, str]],
) -> None:
    chat, file = chat_and_file
    place = Place(server=demo, web=web, headers=client(chat, alice), file=file)
    readable_by_sender = {
        name: statuses for name in SENDERS if 200 in (statuses := opened(place, name))
    }
    assert readable_by_sender == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sender", sorted(SENDERS.keys() - {"Completions"}))
def test_a_member_is_shown_addresses_that_work(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    chat_and_file: tuple[Chat, str],
    sender: str,
) -> None:
    chat, file = chat_and_file
    # Who may share a chat takes its files into another one.
    chat.participants.filter(user=alice.user).update(role="owner")
    place = Place(server=demo, web=web, headers=alice.headers, file=file)
    assert 200 in opened(place, sender)
