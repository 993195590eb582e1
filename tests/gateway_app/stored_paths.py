"""Every way to a stored session, response, task or thread, each as one call by its id.

A read returns what the client is shown. The text is that of `Stored`, or, at a read that shows no
text, the mark that only a client who is let in receives.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
from websockets.sync.client import connect

from sessions_app.models import Response, Session
from tests.client import UampClient, new_event, wait_until
from tests.gateway_app.a2a.calls import call, send
from tests.gateway_app.acp.socket_client import AcpClient
from tests.gateway_app.ag_ui.runs import run_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.conftest import ServerAddress
    from tests.live_server import Person

SECRET: Final = "whispered-words"
TOKEN: Final = "token-of-a-webhook"
RECEIVER: Final = "receiver-1"
AGENT: Final = "/agents/echo"
SECONDS: Final = 4.0
HEADERS: Final = {"A2A-Version": "1.0"}


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Everything a person has stored over every protocol, in chats of their own, and its reader."""

    server: ServerAddress
    web: httpx.Client
    session: str
    live_session: str
    response: str
    item: str
    conversation: str
    conversation_item: str
    thread: str
    live_thread: str
    live_run: str
    task: str
    live_task: str
    acp_session: str
    headers: Mapping[str, str]


def store(server: ServerAddress, web: httpx.Client, who: Person) -> Stored:
    """Ask over every protocol; the agent `live` is still answering afterwards."""
    session, live_session = f"s-{uuid.uuid4().hex}", f"s-{uuid.uuid4().hex}"
    headers = who.headers
    for session_id, agent in ((session, "echo"), (live_session, "live")):
        create = new_event("session.create", uamp_version="1.0", session={"id": session_id})
        _open(web, "POST", "/uamp", headers, json=[{**create, "agent": agent}])
        session_headers = {**headers, "X-Session-ID": session_id}
        for event in (new_event("input.text", text=SECRET), new_event("response.create")):
            _open(web, "POST", "/events", session_headers, json=event)
    answer = web.post("/v1/responses", json={"model": "echo", "input": SECRET}, headers=headers)
    body = {"items": [{"role": "user", "content": SECRET}]}
    conversation = web.post("/v1/conversations", json=body, headers=headers).json()["id"]
    items = web.get(f"/v1/conversations/{conversation}/items", headers=headers).json()
    task = send(web, "echo", SECRET, who=who)["id"]
    live_task = send(web, "live", "go", who=who, configuration={"returnImmediately": True})["id"]
    receiver = {"taskId": live_task, "id": RECEIVER, "url": "https://example.org/", "token": TOKEN}
    set_up = call(web, "live", "CreateTaskPushNotificationConfig", receiver, who=who)
    assert "result" in set_up, set_up
    _open(web, "POST", f"{AGENT}/agui", headers, json=run_input(SECRET, thread="old"))
    _read(web, "POST", "/agents/live/agui", headers, until=SECRET, json=run_input("go", thread="a"))
    with connect(f"{server.ws}{AGENT}/acp", additional_headers=headers, proxy=None) as socket:
        client = AcpClient(socket)
        acp_session = client.new_session()
        prompt = [{"type": "text", "text": SECRET}]
        client.call("session/prompt", sessionId=acp_session, prompt=prompt)
    wait_until(lambda: Response.objects.filter(agent__name="live", text=SECRET).count() == 3)
    wait_until(lambda: not Response.objects.filter(agent__name="echo", finished_at=None).exists())
    return Stored(
        server=server,
        web=web,
        session=session,
        live_session=live_session,
        response=answer.json()["id"],
        item=answer.json()["output"][0]["id"],
        conversation=conversation,
        conversation_item=items["first_id"],
        thread="old",
        live_thread="a",
        live_run=Response.objects.get(session__transport="ag-ui", agent__name="live").pk,
        task=task,
        live_task=live_task,
        acp_session=acp_session,
        headers=headers,
    )


def _open(
    web: httpx.Client, method: str, path: str, headers: Mapping[str, str], **more: Any
) -> httpx.Response:
    answer = web.request(method, path, headers=dict(headers), **more)
    assert answer.is_success, answer.text
    return answer


def _read(
    web: httpx.Client,
    method: str,
    path: str,
    headers: Mapping[str, str],
    *,
    until: str,
    **more: Any,
) -> str:
    """Return the status and body of an answer, up to a text for which a stream is read."""
    ends_at, text = time.monotonic() + SECONDS, ""
    try:
        with web.stream(method, path, headers=dict(headers), timeout=SECONDS, **more) as answer:
            text = f"{answer.status_code} "
            for part in answer.iter_text():
                text += part
                if until in text or time.monotonic() > ends_at:
                    break
    except httpx.ReadTimeout:
        text += "\n(nothing more)"
    return text


# --- The reads ---


def http(
    method: str,
    path: str,
    *,
    until: str = SECRET,
    body: Callable[[Stored], Any] | None = None,
    **headers: str,
) -> Callable[[Stored], str]:
    """Return a read of one request; the path and the headers name fields of Stored."""

    def ask(at: Stored) -> str:
        all_headers = {**HEADERS, **at.headers}
        all_headers |= {
            name.replace("_", "-"): value.format(at=at) for name, value in headers.items()
        }
        more = {} if body is None else {"json": body(at)}
        return _read(at.web, method, path.format(at=at), all_headers, until=until, **more)

    return ask


def ping(session: str) -> Callable[[Stored], Any]:
    """Return the body of a batch that only names a session."""
    return lambda at: [new_event("ping", session_id=getattr(at, session))]


def rpc(method: str, **params: Any) -> Callable[[Stored], Any]:
    """Return the body of a call of JSON-RPC, whose texts name the tasks of Stored."""

    def body_for(at: Stored) -> Any:
        text = json.dumps(params).replace("{at.task}", at.task)
        text = text.replace("{at.live_task}", at.live_task)
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(text)}

    return body_for


def tasks(method: str, agent: str = "echo", until: str = SECRET, **params: Any) -> Any:
    """Return a read of A2A's JSON-RPC; methods with a slash are of 0.3."""
    version = {"A2A_Version": "0.3"} if "/" in method else {}
    return http("POST", f"/agents/{agent}/a2a", until=until, body=rpc(method, **params), **version)


def socket(at: Stored) -> str:
    with UampClient(f"{at.server.ws}/uamp", headers=dict(at.headers)) as client:
        resume = {"session_id": at.session, "after": 0}
        client.send("session.create", uamp_version="1.0", session={}, resume=resume)
        return json.dumps(client.until("session.error", "response.done"))


def acp_socket(method: str) -> Callable[[Stored], str]:
    def ask(at: Stored) -> str:
        url = f"{at.server.ws}{AGENT}/acp"
        with connect(url, additional_headers=dict(at.headers), proxy=None) as opened:
            client = AcpClient(opened)
            client.call("initialize", protocolVersion=1)
            session_param = {} if method == "session/list" else {"sessionId": at.acp_session}
            answer = client.call(method, cwd="/", mcpServers=[], **session_param)
            return json.dumps([*client.seen, answer])

    return ask


def acp_http(method: str, session: str, agent: str = "echo") -> Callable[[Stored], str]:
    """Post a request in a new connection, and read the stream that answers."""

    def ask(at: Stored) -> str:
        path, headers = f"/agents/{agent}/acp", dict(at.headers)
        hello = rpc("initialize", protocolVersion=1)(at)
        opened = _open(at.web, "POST", path, headers, json=hello)
        headers["Acp-Connection-Id"] = opened.headers["Acp-Connection-Id"]
        session_param = {} if method == "session/list" else {"sessionId": getattr(at, session)}
        body = rpc(method, cwd="/", mcpServers=[], **session_param)(at)
        posted = at.web.post(path, json={**body, "id": 2}, headers=headers)
        headers["Accept"] = "text/event-stream"
        answer = _read(at.web, "GET", path, headers, until='"id":2')
        if method == "session/resume":
            answer += _read(
                at.web,
                "GET",
                path,
                {**headers, "Acp-Session-Id": session_param["sessionId"]},
                until=SECRET,
            )
        return f"{posted.status_code} {posted.text} {answer}"

    return ask


_RESPONSE: Final = "/v1/responses/{at.response}"
_CONVERSATION: Final = "/v1/conversations/{at.conversation}"
_PUSH: Final = {"taskId": "{at.live_task}"}
_OLD_PUSH: Final = {"id": "{at.live_task}"}
_REST: Final = f"{AGENT}/a2a/rest"
_LIVE_REST: Final = "/agents/live/a2a/rest"


def _continued(at: Stored) -> Any:
    return {"model": "echo", "previous_response_id": at.response, "input": "on"}


def _referring(at: Stored) -> Any:
    reference = {"type": "item_reference", "id": at.item}
    return {"model": "echo", "input": [reference, {"role": "user", "content": "on"}]}


def _resuming(at: Stored) -> Any:
    answer = {"interruptId": f"payment_required:{at.live_run}", "status": "cancelled"}
    return {**run_input("", thread=at.live_thread), "messages": [], "resume": [answer]}


def responses_socket(at: Stored) -> str:
    url = f"{at.server.ws}/v1/responses"
    with connect(url, additional_headers=dict(at.headers), proxy=None) as opened:
        opened.send(json.dumps({"type": "response.create", **_continued(at)}))
        frames: list[str] = []
        while not any(
            end in "".join(frames[-1:]) for end in ('"response.completed"', '"type":"error"')
        ):
            frames.append(str(opened.recv(timeout=SECONDS)))
        return "".join(frames)


# Each read with the text that it shows to those who may enter, SECRET unless it shows no text.
READS: Final[dict[str, tuple[Callable[[Stored], str], str]]] = {
    "UAMP socket": (socket, SECRET),
    "UAMP stream": (
        http("GET", "/events/stream", X_Session_ID="{at.session}"),
        SECRET,
    ),
    "UAMP live stream": (http("GET", "/events/stream", X_Session_ID="{at.live_session}"), SECRET),
    "UAMP event": (
        http(
            "POST",
            "/events",
            until="pong",
            body=lambda _: new_event("ping"),
            X_Session_ID="{at.session}",
        ),
        "pong",
    ),
    "UAMP batch": (http("POST", "/uamp", until="pong", body=ping("session")), "pong"),
    "UAMP batch, streamed": (http("POST", "/uamp/stream", body=ping("live_session")), SECRET),
    "Responses": (http("GET", _RESPONSE), SECRET),
    "Responses, streamed": (http("GET", f"{_RESPONSE}?stream=true"), SECRET),
    "Conversation": (http("GET", _CONVERSATION), '"object":"conversation"'),
    "Conversation, items": (http("GET", f"{_CONVERSATION}/items"), SECRET),
    "Conversation, item": (
        http("GET", f"{_CONVERSATION}/items/{{at.conversation_item}}"),
        SECRET,
    ),
    "Responses, input": (http("GET", f"{_RESPONSE}/input_items"), SECRET),
    "Responses, cancel": (http("POST", f"{_RESPONSE}/cancel"), SECRET),
    "Responses, continued": (
        http("POST", "/v1/responses", until='"completed"', body=_continued),
        '"completed"',
    ),
    "Responses, tokens of a continued one": (
        http("POST", "/v1/responses/input_tokens", until='"input_tokens"', body=_continued),
        '"input_tokens"',
    ),
    "Responses socket, continued": (responses_socket, '"response.completed"'),
    "Responses, item reference": (
        http("POST", "/v1/responses", until='"completed"', body=_referring),
        '"completed"',
    ),
    "AG-UI connect": (
        http("POST", f"{AGENT}/agui/connect", body=lambda at: run_input("", thread=at.thread)),
        SECRET,
    ),
    "AG-UI connect, live": (
        http(
            "POST",
            "/agents/live/agui/connect",
            body=lambda at: run_input("", thread=at.live_thread),
        ),
        SECRET,
    ),
    "ACP socket, load": (acp_socket("session/load"), SECRET),
    "ACP socket, resume": (acp_socket("session/resume"), '"result": {}'),
    "ACP socket, list": (acp_socket("session/list"), '"sessionId"'),
    "ACP load": (acp_http("session/load", "acp_session"), SECRET),
    "ACP list": (acp_http("session/list", "acp_session"), '"updatedAt"'),
    "ACP resume": (acp_http("session/resume", "live_session", "live"), SECRET),
    "A2A GetTask": (tasks("GetTask", id="{at.task}"), SECRET),
    "A2A ListTasks": (tasks("ListTasks", includeArtifacts=True), SECRET),
    "A2A SubscribeToTask": (tasks("SubscribeToTask", "live", id="{at.live_task}"), SECRET),
    "A2A GetTaskPushNotificationConfig": (
        tasks("GetTaskPushNotificationConfig", "live", TOKEN, id=RECEIVER, **_PUSH),
        TOKEN,
    ),
    "A2A ListTaskPushNotificationConfigs": (
        tasks("ListTaskPushNotificationConfigs", "live", TOKEN, **_PUSH),
        TOKEN,
    ),
    "A2A SendMessage": (
        tasks(
            "SendMessage",
            "live",
            "is running",
            message={
                "messageId": "m",
                "role": "ROLE_USER",
                "parts": [{"text": "on"}],
                "taskId": "{at.live_task}",
            },
        ),
        "is running",
    ),
    "A2A tasks/get": (tasks("tasks/get", id="{at.task}"), SECRET),
    "A2A tasks/resubscribe": (tasks("tasks/resubscribe", "live", id="{at.live_task}"), SECRET),
    "A2A tasks/pushNotificationConfig/get": (
        tasks("tasks/pushNotificationConfig/get", "live", TOKEN, **_OLD_PUSH),
        TOKEN,
    ),
    "A2A tasks/pushNotificationConfig/list": (
        tasks("tasks/pushNotificationConfig/list", "live", TOKEN, **_OLD_PUSH),
        TOKEN,
    ),
    "A2A REST, task": (http("GET", f"{_REST}/tasks/{{at.task}}"), SECRET),
    "A2A REST, tasks": (http("GET", f"{_REST}/tasks?includeArtifacts=true"), SECRET),
    "A2A REST, subscribe": (http("GET", f"{_LIVE_REST}/tasks/{{at.live_task}}:subscribe"), SECRET),
    "A2A REST, receivers": (
        http("GET", f"{_LIVE_REST}/tasks/{{at.live_task}}/pushNotificationConfigs", until=TOKEN),
        TOKEN,
    ),
    "/tasks": (http("GET", f"{AGENT}/tasks/{{at.task}}"), SECRET),
    # Those that end something come last: a control of another read needs what they end.
    "A2A CancelTask": (
        tasks("CancelTask", "live", "TASK_STATE_CANCELED", id="{at.live_task}"),
        "TASK_STATE_CANCELED",
    ),
    "AG-UI resume": (
        http("POST", "/agents/live/agui", until="RUN_STARTED", body=_resuming),
        "RUN_STARTED",
    ),
}


def leave_all(who: Person) -> None:
    """Take a person out of every chat, as another owner of each would."""
    for session in Session.objects.filter(user=who.user):
        session.chat.participants.filter(user=who.user).update(left_at=session.created_at)
