"""An answer of 10 MB is signed, stored and verified, and its hashing does not stop the loop."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from agents_app.providers import scripts
from agents_app.runtime import agent_run
from chat_app.models import Message
from tests.live_server import quick_agent
from uamp import signatures
from uamp.command_line.program import program
from uamp.signatures import check_answer
from upp.providers.scripted import Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import httpx

    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial, Person
    from upp import LLMRequest
    from upp.providers.scripted import Step

SIZE = 10_000_000
PIECES = 100
LINE = "A line of a long report, with a number and an umlaut: \u00fc.\n"
TEXT = (LINE * (SIZE // len(LINE) + 1))[:SIZE]
# A message is parsed, hashed and compared: copies of it, but not one for each of its parts.
MAX_MEMORY = 400 * 1024


async def report(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say the text in pieces."""
    step = SIZE // PIECES
    for start in range(0, SIZE, step):
        yield Text(TEXT[start : start + step])


@pytest.mark.long
def test_a_long_answer_is_signed_stored_and_verified(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ten times what an answer may have.
    monkeypatch.setattr(agent_run, "ANSWER_CHARS", SIZE)
    monkeypatch.setitem(scripts.SCRIPTS, "report", report)
    quick_agent("reporter", "report")
    hashed_on: list[str] = []
    hash_of_text = signatures.text_sha256

    def watched(text: str) -> str:
        # A running loop in this thread would be the server's.
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        hashed_on.append(threading.current_thread().name)
        return hash_of_text(text)

    monkeypatch.setattr(signatures, "text_sha256", watched)
    client = dial(alice)
    client.create_session(agent="reporter")
    done = client.answer("Report, please.")[-1]
    assert done["type"] == "response.done", done.get("error")
    assert len(hashed_on) == 1
    assert hashed_on[0].startswith("signatures")
    chat_id = Message.objects.get(role="assistant").chat_id
    query = {"expand": "signature", "order": "asc"}
    path = f"/api/v1/chats/{chat_id}/messages"
    question, answer = web.get(path, params=query, headers=alice.headers).json()["data"]
    assert answer["content"] == TEXT
    assert answer["signature"] == done["signature"]
    keys: list[dict[str, Any]] = web.get("/.well-known/jwks.json").json()["keys"]
    verdict = check_answer(answer, keys, chat_id=chat_id, question=question)
    assert (verdict.state, verdict.request) == ("valid", "same")
    changed = {**answer, "content": TEXT[:-1] + "!"}
    assert check_answer(changed, keys).state == "changed"
    # The whole chat as a file, with its log, which has the text three times.
    export = f"/api/v1/chats/{chat_id}/export"
    query = {"format": "ndjson", "log": "true"}
    file, key_file = tmp_path / "chat.ndjson", tmp_path / "keys.json"
    file.write_bytes(web.get(export, params=query, headers=alice.headers).content)
    key_file.write_text(json.dumps({"keys": keys}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    verified = CliRunner().invoke(program, ["verify", str(file), "--keys", str(key_file)])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # The head of the log is signed by a key that is not given.
    assert "The log: not changed, 4 entries." in verified.output
    assert "The answers: 1 as signed." in verified.output
    assert used < MAX_MEMORY
