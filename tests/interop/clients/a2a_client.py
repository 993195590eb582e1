"""The client of A2A 1.0: `a2a_client.py ORIGIN KEY BINDING TOKEN`."""

import asyncio
import json
import queue
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory  # type: ignore[import-not-found]  # not in .venv
from a2a.types import a2a_pb2 as a2a  # type: ignore[import-not-found]  # not in .venv
from google.protobuf.json_format import Parse

ORIGIN, KEY, BINDING, TOKEN = sys.argv[1:5]
SEEN_PIECES = 3
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


@contextmanager
def receiver() -> Iterator[tuple[str, queue.Queue[bytes]]]:
    """Run a receiver of push notifications; give its address and the bodies that it gets."""
    bodies: queue.Queue[bytes] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", bodies
    server.shutdown()


def message_request(text: str, *, at_once: bool = False, **members: Any) -> Any:
    """Return a request to send a message."""
    part = a2a.Part(text=text)
    message = a2a.Message(
        message_id=uuid.uuid4().hex, role=a2a.Role.ROLE_USER, parts=[part], **members
    )
    configuration = a2a.SendMessageConfiguration(return_immediately=at_once)
    return a2a.SendMessageRequest(message=message, configuration=configuration)


async def client(http: httpx.AsyncClient, agent: str, *, streaming: bool) -> Any:
    """Return a client of an agent, made of its card."""
    config = ClientConfig(
        streaming=streaming, httpx_client=http, supported_protocol_bindings=[BINDING]
    )
    return await ClientFactory(config).create_from_url(f"{ORIGIN}/agents/{agent}")


def state(task: Any) -> str:
    """Return the name of the state of a task."""
    return str(a2a.TaskState.Name(task.status.state))


async def failure(call: Any) -> str:
    """Return the class of the error that a call ends with."""
    try:
        await call
    except Exception as error:  # noqa: BLE001 any of the client's
        return type(error).__name__
    return ""


async def talk(http: httpx.AsyncClient) -> dict[str, Any]:
    """Stream, ask whole, read and list tasks."""
    streaming = await client(http, "echo", streaming=True)
    events = [event async for event in streaming.send_message(message_request("Hello there"))]
    artifacts = [e.artifact_update.artifact for e in events if e.HasField("artifact_update")]
    plain_client = await client(http, "echo", streaming=False)
    again = [
        event
        async for event in plain_client.send_message(message_request("Again", context_id="ctx"))
    ]
    task_id = events[0].task.id
    listed = await plain_client.list_tasks(a2a.ListTasksRequest(page_size=1))
    card = await plain_client.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())
    return {
        "text": "".join(part.text for artifact in artifacts for part in artifact.parts),
        "end": state(events[-1].status_update),
        "got": state(await plain_client.get_task(a2a.GetTaskRequest(id=task_id))),
        "context": again[-1].task.context_id,
        "listed": [listed.total_size, bool(listed.next_page_token)],
        "extended": card.name,
        "missing": await failure(plain_client.get_task(a2a.GetTaskRequest(id="none"))),
    }


async def leave(http: httpx.AsyncClient) -> dict[str, Any]:
    """Begin a task, follow it on another stream, and cancel it."""
    plain_client = await client(http, "slow", streaming=False)
    events = [
        event async for event in plain_client.send_message(message_request("Count", at_once=True))
    ]
    task_id = events[-1].task.id
    kinds: list[str] = []
    streaming = await client(http, "slow", streaming=True)
    async for event in streaming.subscribe(a2a.SubscribeToTaskRequest(id=task_id)):
        kinds.append(event.WhichOneof("payload"))
        if len(kinds) == SEEN_PIECES:
            break
    cancelled = await plain_client.cancel_task(a2a.CancelTaskRequest(id=task_id))
    return {
        "begun": state(events[-1].task),
        "kinds": kinds,
        "cancelled": state(cancelled),
        "twice": await failure(plain_client.cancel_task(a2a.CancelTaskRequest(id=task_id))),
    }


async def pay(http: httpx.AsyncClient) -> dict[str, Any]:
    """Ask an agent with a price, and pay in the task."""
    plain_client = await client(http, "paid-echo", streaming=False)
    demanded = [event async for event in plain_client.send_message(message_request("Hello there"))][
        -1
    ].task
    payload = {"x402Version": 2, "payload": {"token": TOKEN}}
    metadata = {"x402.payment.status": "payment-submitted", "x402.payment.payload": payload}
    payment = message_request("Paid", task_id=demanded.id, metadata=metadata)
    done = [event async for event in plain_client.send_message(payment)][-1].task
    return {
        "demanded": state(demanded),
        "status": demanded.status.message.metadata["x402.payment.status"],
        "done": state(done),
        "text": done.artifacts[0].parts[0].text,
        "receipts": len(done.status.message.metadata["x402.payment.receipts"]),
    }


async def wait(http: httpx.AsyncClient) -> dict[str, Any]:
    """Have the states of a task sent to a receiver, and run a tool for it."""
    plain_client = await client(http, "tool-user", streaming=False)
    with receiver() as (url, bodies):
        question = message_request("Find it", metadata={"uamp_tools": [TOOL]})
        question.configuration.task_push_notification_config.url = url
        waits = [event async for event in plain_client.send_message(question)][-1].task
        key = a2a.ListTaskPushNotificationConfigsRequest(task_id=waits.id)
        listed = await plain_client.list_task_push_notification_configs(key)
        answer = message_request("three cats", task_id=waits.id)
        done = [event async for event in plain_client.send_message(answer)][-1].task
        seen: list[str] = []
        while "TASK_STATE_COMPLETED" not in seen:
            body = await asyncio.to_thread(bodies.get, timeout=30)
            seen.append(state(Parse(body, a2a.StreamResponse()).task))
    return {
        "states": [state(waits), state(done)],
        "listed": [config.url == url for config in listed.configs],
        "end": seen[-1],
    }


async def main() -> dict[str, Any]:
    """Do all of it as the owner of the key."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        return {
            "talk": await talk(http),
            "leave": await leave(http),
            "pay": await pay(http),
            "wait": await wait(http),
        }


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
