"""The client of A2A 0.3: `a2a_03_client.py ORIGIN KEY TRANSPORT`."""

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
from a2a.client import (  # type: ignore[import-not-found]  # not in .venv
    A2ACardResolver,
    ClientConfig,
    ClientFactory,
)
from a2a.types import (  # type: ignore[import-not-found]  # not in .venv
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

ORIGIN, KEY, TRANSPORT = sys.argv[1:4]
SEEN_PIECES = 3


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


def message(text: str, **members: Any) -> Any:
    """Return a message of text."""
    parts = [Part(root=TextPart(text=text))]
    return Message(message_id=uuid.uuid4().hex, role=Role.user, parts=parts, **members)


async def client(http: httpx.AsyncClient, agent: str, *, streaming: bool) -> Any:
    """Return a client of an agent, made of its card."""
    card = await A2ACardResolver(http, f"{ORIGIN}/agents/{agent}").get_agent_card()
    config = ClientConfig(streaming=streaming, httpx_client=http, supported_transports=[TRANSPORT])
    return ClientFactory(config).create(card)


async def main() -> dict[str, Any]:
    """Stream, ask whole, follow again and cancel, as the owner of the key."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as http:
        streaming = await client(http, "echo", streaming=True)
        events = [event async for event in streaming.send_message(message("Hello there"))]
        task = events[-1][0]
        plain_client = await client(http, "echo", streaming=False)
        question = message("Again", context_id="ctx")
        again = [event async for event in plain_client.send_message(question)][-1][0]
        fetched_task = await plain_client.get_task(TaskQueryParams(id=task.id))
        slow = await client(http, "slow", streaming=True)
        task_id = ""
        async for running, update in slow.send_message(message("Count")):
            task_id = running.id
            if update is not None:
                break
        seen = 0
        async for _ in slow.resubscribe(TaskIdParams(id=task_id)):
            seen += 1
            if seen == SEEN_PIECES:
                break
        with receiver() as (url, bodies):
            config = PushNotificationConfig(url=url, id="mine")
            task_config = TaskPushNotificationConfig(
                task_id=task_id, push_notification_config=config
            )
            stored_config = await slow.set_task_callback(task_config)
            cancelled = await slow.cancel_task(TaskIdParams(id=task_id))
            body = await asyncio.to_thread(bodies.get, timeout=30)
    return {
        "text": "".join(part.root.text for artifact in task.artifacts for part in artifact.parts),
        "states": [task.status.state, again.status.state, fetched_task.status.state],
        "context": again.context_id,
        "seen": seen,
        "cancelled": cancelled.status.state,
        "receiver": stored_config.push_notification_config.id,
        "notified": Task.model_validate_json(body).status.state,
    }


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
