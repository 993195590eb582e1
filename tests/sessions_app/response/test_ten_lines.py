"""The short verifiers of docs/signatures.md, run on answers that were read over the wire."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Message
from signing_app.keys import ALGORITHMS
from tests import services
from tests.live_server import quick_agent
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Dial, Person

PAGE = Path(__file__).parents[3] / "docs" / "signatures.md"
LINES_MAX = 12


def program(language: str) -> str:
    """Return the only program of a language on the page."""
    (block,) = re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    code = [line for line in block.splitlines() if line and not line.startswith(("#", "//"))]
    assert len(code) <= LINES_MAX
    return str(block)


@pytest.fixture(params=["python", "js"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return the command of a verifier."""
    if request.param == "python":
        file, runner = tmp_path / "verify.py", sys.executable
    else:
        node = services.node()
        if node is None:
            pytest.skip("no node: `make install` installs one")
        file, runner = tmp_path / "verify.mjs", node
    file.write_text(program(request.param), encoding="utf-8")
    return [runner, str(file)]


def is_verified(command: list[str], message: dict[str, Any], keys: dict[str, Any]) -> bool:
    """Return whether a verifier takes a message; fails on anything but a plain refusal."""
    folder = Path(command[1]).parent
    for name, document in (("message", message), ("keys", keys)):
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    files = [str(folder / "message.json"), str(folder / "keys.json")]
    done = subprocess.run(  # noqa: S603 the programs of the page
        [*command, *files], capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS
    )
    refusals = ("changed", "Signature verification failed")
    assert done.returncode == 0 or any(refusal in done.stderr for refusal in refusals), done.stderr
    return done.returncode == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_short_program_verifies_an_answer(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    settings: Settings,
    command: list[str],
    algorithm: str,
) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = algorithm
    quick_agent("signer", "echo")
    client = dial(alice)
    client.create_session(agent="signer")
    client.answer("Hello wörld 🎈")
    row = Message.objects.get(role="assistant")
    path = f"/api/v1/messages/{row.pk}"
    message = web.get(path, params={"expand": "signature"}, headers=alice.headers).json()
    keys = web.get("/.well-known/jwks.json").json()

    assert is_verified(command, message, keys)
    assert not is_verified(command, {**message, "content": message["content"] + "."}, keys)
    assert not is_verified(command, {**message, "id": "msg_other"}, keys)
    head, body, tail = message["signature"].split(".")
    forged = f"{head}.{body}.{'A' if tail[0] != 'A' else 'B'}{tail[1:]}"
    assert not is_verified(command, {**message, "signature": forged}, keys)
    others = [{**key, "uamp_owner": "agent:another"} for key in keys["keys"]]
    assert not is_verified(command, message, {"keys": others})
