"""The reference server with a stub model: `server.py PORT`.

Runs in the virtual environment of `benchmarks.reference.installation` and imports nothing of this
repository. All optional parts of the reference are off: logs, rate limits, monitoring,
registration. The model yields 20 words without pauses. The reference opens its WebSocket only for
agents returned by a resolver, so a resolver returns the only agent.
"""

from __future__ import annotations

import logging
import resource
import sys
from typing import TYPE_CHECKING, Any

import uvicorn
from webagents.agents.core.base_agent import (  # type: ignore[import-not-found]  # not in .venv
    BaseAgent,
)
from webagents.agents.skills.core.transport.completions.skill import (  # type: ignore[import-not-found]  # not in .venv
    CompletionsTransportSkill,
)
from webagents.agents.skills.core.transport.uamp.skill import (  # type: ignore[import-not-found]  # not in .venv
    UAMPTransportSkill,
)
from webagents.agents.tools.decorators import (  # type: ignore[import-not-found]  # not in .venv
    handoff,
)
from webagents.server.core.app import (  # type: ignore[import-not-found]  # not in .venv
    WebAgentsServer,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

WORDS = [f"word{number:02} " for number in range(1, 21)]


@handoff(name="stub", prompt="stub")  # type: ignore[untyped-decorator]  # not in .venv
async def answer(**_: Any) -> AsyncGenerator[Any, None]:
    """Yield the words in the format of Chat Completions."""
    for word in WORDS:
        yield {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def main() -> None:
    """Serve until SIGTERM."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    skills = {"uamp": UAMPTransportSkill(), "completions": CompletionsTransportSkill()}
    agent = BaseAgent(name="bench", handoffs=[answer], skills=skills)

    async def resolve(name: str) -> Any:
        return agent if name == "bench" else None

    server = WebAgentsServer(
        dynamic_agents=resolve,
        enable_rate_limiting=False,
        enable_request_logging=False,
        enable_monitoring=False,
        enable_prometheus=False,
        enable_structured_logging=False,
        agent_card=False,
        heartbeat=False,
        quiet=True,
    )
    logging.disable(logging.CRITICAL)
    config = uvicorn.Config(
        server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", backlog=4096
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
