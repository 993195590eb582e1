"""A crude MCP server over stdio, of 2025-06-18, that misbehaves as configured; it uses no library.

`python tests/agents_app/mcp/mcp_crude.py JOURNAL WAY`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAY = sys.argv[2]
# Thirty letters and another character keep it busy for minutes.
SLOW = "^(a+)+$"
SCHEMAS: dict[str, Any] = {
    "large": {"type": "object", "description": "x" * 65_536},
    "no_schema": {"type": "object", "properties": {"a": {"type": 7}}},
    "far_away": {"type": "object", "properties": {"a": {"$ref": os.environ.get("SCHEMA", "")}}},
    "nul": {"type": "object", "description": "a\0b"},
    "slow_schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": SLOW}}},
}


# What comes back where the tool says what its results look like.
RESULTS: dict[str, Any] = {
    "slow_result": {"a": "a" * 30 + "!"},
    "good_result": {"a": "aaa"},
    "bad_result": {"a": 7},
}


def journal(line: str) -> None:
    """Write a line into the journal."""
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{line}\n")


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    """List one tool, or too many."""
    if WAY == "many":
        return [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(250)]
    if WAY == "gone" and Path(sys.argv[1]).exists():
        return []
    schema = SCHEMAS.get(WAY, {"type": "object"})
    listed = {"name": "work", "description": "Work\0!", "inputSchema": schema}
    if WAY in RESULTS:
        slow_property = {"type": "string", "pattern": SLOW}
        listed["outputSchema"] = {"type": "object", "properties": {"a": slow_property}}
    return [listed, dict(listed)] if WAY == "twice" else [listed]


def work(number: object) -> None:
    """Answer a call in the way that was asked for."""
    if WAY == "malformed":
        sys.stdout.write('{"jsonrpc": "2.0", "id": ' + json.dumps(number) + ', "resu\n')
        sys.stdout.flush()
    elif WAY == "odd":
        send({"id": number, "result": {"content": "no list"}})
    elif WAY == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    elif WAY == "error":
        send({"id": number, "error": {"code": -32000, "message": f"no {os.environ['TOKEN']}"}})
    elif WAY == "flood":
        meta = {"progressToken": number}
        for step in range(2000):
            send({"method": "notifications/progress", "params": {**meta, "progress": step}})
        send({"id": number, "result": {"content": [{"type": "text", "text": "wet"}]}})
    elif WAY in RESULTS:
        send({"id": number, "result": {"content": [], "structuredContent": RESULTS[WAY]}})
    elif WAY != "silent":
        send({"id": number, "result": {"content": [{"type": "text", "text": "done"}]}})


def answer(message: dict[str, Any]) -> None:
    """Answer one message."""
    number, method = message.get("id"), message.get("method")
    if method == "notifications/cancelled":
        journal("cancelled")
    if number is None:
        return
    if method == "initialize":
        info = {"name": "crude", "version": "1"}
        result: dict[str, Any] = {"protocolVersion": "2025-06-18", "serverInfo": info}
        send({"id": number, "result": {**result, "capabilities": {"tools": {}}}})
    elif method == "tools/list":
        send({"id": number, "result": {"tools": tools()}})
    elif method == "tools/call":
        journal(f"called {os.getpid()}")
        work(number)
    else:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    """Read messages until there are no more, and sometimes longer."""
    if WAY == "dead":
        sys.exit(4)
    if WAY == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if WAY in {"stubborn", "leaver"}:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        journal(f"child {child.pid}")
    if WAY == "noisy":
        print("Welcome!", flush=True)  # noqa: T201 that is the noise
    for line in sys.stdin:
        if WAY != "mute":
            answer(json.loads(line))
    journal("input ended")
    while WAY == "stubborn":
        time.sleep(1)


main()
