"""The package for JavaScript: packed, installed into an empty folder, checked, run under node."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chat_app.models import Message
from tests import services
from tests.live_server import Person, quick_agent, shared_chat
from tests.programs import PROGRAM_SECONDS
from tests.uamp.client.cutting_proxy import cutting_proxy

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "packaging" / "uamp-js"
TSC = ROOT / ".venv" / "browser" / "node_modules" / ".bin" / "tsc"
PROGRAM = """
import { ask, connect, type Piece } from "uamp-client";

declare const process: { env: Record<string, string> };
const { ADDRESS: url, KEY: key, CHAT, TRANSPORT } = process.env;
const client = await connect({ url, key, transport: TRANSPORT as "websocket" | "sse" });
const chat = client.open(CHAT);
const said: string[] = [];
for (const words of JSON.parse(process.env.WORDS) as string[]) {
  let text = "";
  for await (const piece of ask(chat, words)) {
    const { restarted, text: more }: Piece = piece;
    text = restarted ? more : text + more;
  }
  said.push(text);
}
const history: string[] = [];
for await (const message of client.rest.history(CHAT)) history.push(message.content);
console.log(JSON.stringify({ said, history, transport: client.state.transport }));
client.close();
"""
WORDS = [f"turn {number} " + " ".join(f"w{at}é" for at in range(5)) for number in range(8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the package, install it into an empty folder, and compile a program with its types."""
    node = services.node()
    if node is None or not TSC.exists():
        pytest.skip("no node or no tsc: `make install` installs them")
    home = tmp_path_factory.mktemp("javascript")
    variables = {"PATH": f"{Path(node).parent}:{os.environ['PATH']}", "HOME": str(home)}
    npm = str(Path(node).with_name("npm"))
    (home / "package.json").write_text('{"private": true, "type": "module"}')
    (home / "program.ts").write_text(PROGRAM)
    tarball = "uamp-client-0.1.0.tgz"
    flags = ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,dom", "--types", ""]
    for command in (
        [npm, "pack", str(PACKAGE), "--pack-destination", str(home)],
        [npm, "install", "--offline", "--no-audit", "--no-fund", str(home / tarball)],
        [str(TSC), "--strict", *flags, "program.ts"],
    ):
        subprocess.run(  # noqa: S603 our own
            command,
            cwd=home,
            env=variables,
            check=True,
            capture_output=True,
            timeout=PROGRAM_SECONDS,
        )
    return home


@pytest.mark.sampled(1)
@pytest.mark.parametrize("transport", ["websocket", "sse"])
def test_a_program_asks_through_cuts_and_shows_each_answer_once(
    demo: ServerAddress, alice: Person, folder: Path, transport: str
) -> None:
    quick_agent("teller", "echo", delay=0.004)
    chat = shared_chat(alice, agents=("teller",), trigger="always")

    async def run() -> tuple[bytes, bytes, int]:
        async with cutting_proxy(demo.port) as proxy:
            process = await asyncio.create_subprocess_exec(
                str(services.node()),
                "program.js",
                cwd=folder,
                env={
                    "ADDRESS": proxy.url,
                    "KEY": alice.key,
                    "CHAT": chat.pk,
                    "TRANSPORT": transport,
                    "WORDS": json.dumps(WORDS),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            running = asyncio.create_task(asyncio.wait_for(process.communicate(), PROGRAM_SECONDS))
            # Over HTTP an input is a request of its own: a second cut between those that are sent
            # again would leave it waiting for the next turn.
            at, step = (3, 3) if transport == "websocket" else (19, 5)
            while not running.done() and proxy.cuts < len(WORDS):
                if not proxy.is_armed:
                    at += step
                    proxy.cut_after(at)
                await asyncio.sleep(0.02)
            out, errors = await running
            return out, errors, proxy.cuts

    out, errors, cuts = asyncio.run(run())
    assert out, errors.decode()
    result = json.loads(out)
    assert result["said"] == WORDS
    assert result["transport"] == transport
    assert result["history"] == [text for words in WORDS for text in (words, words)]
    stored = Message.objects.filter(chat=chat).order_by("seq")
    assert [message.content for message in stored] == result["history"]
    assert cuts >= 2
