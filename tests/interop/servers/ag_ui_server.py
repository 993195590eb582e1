"""An agent on Pydantic AI's adapter of AG-UI: `ag_ui_server.py PORT`. It repeats words one by one.

It calls the tool `weather` of its client where one is declared, and repeats the result.
"""

import sys

import uvicorn
from pydantic_ai import Agent  # type: ignore[import-not-found]  # not in .venv
from pydantic_ai.models.function import (  # type: ignore[import-not-found]  # as above
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)
from pydantic_ai.ui.ag_ui import AGUIAdapter  # type: ignore[import-not-found]  # as above
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def repeat(messages, info):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 the kit's types are not here
    """Yield the words of the last message, a thought before them, or a call before all."""
    last = messages[-1].parts[-1]
    if info.function_tools and last.part_kind == "user-prompt":
        yield {0: DeltaToolCall(name="weather", json_args='{"city": "Oslo"}', tool_call_id="w1")}
        return
    yield {0: DeltaThinkingPart(content="The question is short.")}
    for word in str(last.content).split():
        yield f"{word} "


agent = Agent(FunctionModel(stream_function=repeat))


async def run(request: Request) -> Response:
    """Answer a RunAgentInput."""
    answer: Response = await AGUIAdapter.dispatch_request(request, agent=agent)
    return answer


app = Starlette(routes=[Route("/", run, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
