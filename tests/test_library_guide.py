"""Every example in docs/libraries.md runs unchanged with only the wheel installed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from tests.wheels import build_wheels, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "docs" / "libraries.md").read_text()
EXAMPLES = dict(
    re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL)
)
NOTHING_OF_THE_SERVER = """
import sys
assert not {"django", "agents_app", "sessions_app", "uamp"} & set(sys.modules)
"""


async def answer(exchange: Exchange) -> None:
    """Act as a model: call the first tool once, follow a schema, or else answer with text."""
    body = exchange.body
    if body["model"] == "no-such-model":
        await exchange.refuse("404 Not Found", b'{"error": {"message": "no such model"}}')
        return
    await exchange.send(STREAM_HEAD)
    if body.get("tools") and body["messages"][-1]["role"] != "tool":
        function = body["tools"][0]["function"]
        arguments = dict.fromkeys(function["parameters"]["properties"], "Oslo")
        call = {"name": function["name"], "arguments": json.dumps(arguments)}
        await exchange.delta(tool_calls=[{"index": 0, "id": "call_1", "function": call}])
        await exchange.finish("tool_calls")
        return
    result: Any = "It is 4 degrees."
    if body.get("response_format"):
        result = json.dumps({"city": "Oslo", "degrees": 4})
    await exchange.delta(content=result)
    await exchange.finish()


@pytest.fixture(scope="module")
def wire() -> Iterator[str]:
    """Yield the address of a server with the chat completions API."""
    loop = asyncio.new_event_loop()
    ready: list[str] = []
    is_ready, is_over = threading.Event(), asyncio.Event()

    async def run() -> None:
        async with serve(answer) as server:
            ready.append(server.url)
            is_ready.set()
            await asyncio.wait_for(is_over.wait(), 600)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert is_ready.wait(10)
    yield ready[0]
    loop.call_soon_threadsafe(is_over.set)
    thread.join(10)
    loop.close()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the libraries installed."""
    directory = tmp_path_factory.mktemp("installed")
    return environment(directory, [*build_wheels(directory).values()])


def test_every_part_of_the_guide_has_its_example() -> None:
    assert set(EXAMPLES) == set(re.findall(r"^## (.+)$", GUIDE, re.MULTILINE))


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_runs_as_it_stands(
    heading: str, wire: str, python: Path, tmp_path: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[heading] + NOTHING_OF_THE_SERVER)
    variables = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    done = subprocess.run(  # noqa: S603 our own text
        [str(python), "-W", "error", str(script)],
        env={**variables, "OPENAI_BASE_URL": wire, "NO_PROXY": "*"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
