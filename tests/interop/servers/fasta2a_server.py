"""An agent on fasta2a: `fasta2a_server.py PORT`. It repeats words one by one (A2A 1.0, 0.3)."""

import asyncio
import sys

import uvicorn
from fasta2a.pydantic_ai import agent_to_a2a  # type: ignore[import-not-found]  # not in .venv
from pydantic_ai import Agent  # type: ignore[import-not-found]  # as above
from pydantic_ai.models.function import FunctionModel  # type: ignore[import-not-found]  # as above

PORT = int(sys.argv[1])


async def repeat(messages, _info):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 the kit's types are not here
    """Yield the words of the last message; after `stay` there is none."""
    text = str(messages[-1].parts[-1].content)
    for word in text.split():
        yield f"{word} "
        if word == "stay":
            await asyncio.wait_for(asyncio.Event().wait(), 300)


agent = Agent(FunctionModel(stream_function=repeat), name="parrot")
app = agent_to_a2a(agent, url=f"http://127.0.0.1:{PORT}/", description="Repeats what it is sent.")
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
