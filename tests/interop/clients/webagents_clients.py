"""The reference's daemon answers its clients, unchanged: `webagents_clients.py ORIGIN KEY`.

`PortalConnectSkill` registers an agent of the key's person with a connect token; `NLISkill` and
`LLMProxySkill` ask it.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
from webagents.agents.core.base_agent import (  # type: ignore[import-not-found]  # not in .venv
    BaseAgent,
)
from webagents.agents.skills.base import (  # type: ignore[import-not-found]  # not in .venv
    Handoff,
    Skill,
)
from webagents.agents.skills.core.llm.proxy.skill import (  # type: ignore[import-not-found]  # not in .venv
    LLMProxySkill,
)
from webagents.agents.skills.robutler.nli.skill import (  # type: ignore[import-not-found]  # not in .venv
    NLISkill,
)
from webagents.agents.skills.robutler.portal_connect.skill import (  # type: ignore[import-not-found]  # not in .venv
    PortalConnectSkill,
)

ORIGIN, KEY = sys.argv[1:3]
SOCKET = f"ws{ORIGIN.removeprefix('http')}"
NAME = "reference"
SECONDS = 60


class Repeat(Skill):  # type: ignore[misc]  # see above
    """Stands in for a model: says the last message, word by word."""

    async def initialize(self, agent: Any) -> None:
        """Register as what answers for the agent."""
        metadata = {"function": self.answer, "priority": 1, "is_generator": True}
        agent.register_handoff(Handoff(target="repeat", metadata=metadata), source="repeat")

    async def answer(
        self, messages: list[dict[str, Any]], **_options: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Stream chunks as OpenAI's API does."""
        for word in messages[-1]["content"].split():
            yield {"choices": [{"delta": {"content": f"{word} "}}]}


async def main() -> None:
    """Connect the daemon, ask it twice, and print the answers."""
    agent = BaseAgent(name=NAME, instructions="Repeat.", skills={"repeat": Repeat()})
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(
        base_url=ORIGIN, headers=headers, trust_env=False, timeout=SECONDS
    ) as http:
        token_answer = await http.post("/api/v1/connect-tokens", json={"agent": NAME})
    token = token_answer.raise_for_status().json()["secret"]
    daemon = PortalConnectSkill(
        {"portal_ws_url": SOCKET, "agents": [{"name": NAME, "token": token}], "autostart": False}
    )
    daemon.set_agent_resolver({NAME: agent}.get)
    await daemon.start()
    async with asyncio.timeout(SECONDS):
        while NAME not in daemon._session_by_id.values():  # noqa: ASYNC110 no event says it
            await asyncio.sleep(0.05)

    asker = NLISkill({"agent_base_url": ORIGIN})
    # What its tool calls, without the purchases around it.
    answer_text = await asker._send_via_uamp(
        f"{ORIGIN}/agents/{NAME}", "hello there", headers, None, SECONDS
    )
    proxy = LLMProxySkill({"proxy_url": f"{SOCKET}/agents/{NAME}/uamp?token={KEY}"})
    await proxy.initialize(BaseAgent(name="caller", instructions=""))
    pieces = [
        chunk["choices"][0]["delta"].get("content") or ""
        async for chunk in proxy.chat_completion_stream([{"role": "user", "content": "and again"}])
        if chunk.get("choices")
    ]
    await daemon.stop()
    print(json.dumps({"nli": answer_text, "proxy": "".join(pieces)}))  # noqa: T201 read by the test


asyncio.run(main())
