"""An agent on a2a-sdk: `a2a_server.py PORT`. It repeats words one by one, in A2A 1.0 and 0.3."""

import asyncio
import sys

import uvicorn
from a2a.helpers import (  # type: ignore[import-not-found]  # not in .venv
    get_message_text,
    new_task_from_user_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor  # type: ignore[import-not-found]  # as above
from a2a.server.request_handlers import (  # type: ignore[import-not-found]  # as above
    DefaultRequestHandler,
)
from a2a.server.routes import (  # type: ignore[import-not-found]  # as above
    create_agent_card_routes,
    create_jsonrpc_routes,
)
from a2a.server.tasks import (  # type: ignore[import-not-found]  # as above
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types.a2a_pb2 import (  # type: ignore[import-not-found]  # as above
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
)
from starlette.applications import Starlette

PORT = int(sys.argv[1])
URL = f"http://127.0.0.1:{PORT}/rpc"


class Parrot(AgentExecutor):  # type: ignore[misc]  # the kit has no types here
    """Repeats a message word by word; `stay` goes on until it is cancelled."""

    async def execute(self, context, event_queue) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """See AgentExecutor."""
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = get_message_text(context.message)
        for place, word in enumerate(text.split()):
            parts = [new_text_part(f"{word} ")]
            await updater.add_artifact(parts, artifact_id="answer", append=place > 0)
            if word == "stay":
                await asyncio.wait_for(asyncio.Event().wait(), 300)
        await updater.complete()

    async def cancel(self, context, event_queue) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """See AgentExecutor."""
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel()


card = AgentCard(
    name="parrot",
    description="Repeats what it is sent.",
    version="1.0",
    supported_interfaces=[
        AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version=version)
        for version in ("1.0", "0.3")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="repeat", name="repeat", description="Repeats.", tags=["repeat"])],
)
handler = DefaultRequestHandler(
    agent_executor=Parrot(), task_store=InMemoryTaskStore(), agent_card=card
)
routes = [
    *create_agent_card_routes(card),
    *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=PORT, log_level="warning")
