"""Exports with their logs, and the programs that verify them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from tests.uamp.signatures.node_crypto import verified_by_node
from uamp.command_line.program import program

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx

    from tests.live_server import Person

BROWSER: Path = Path(__file__).parents[3] / "uamp" / "logs" / "browser_check.mjs"


def exported(web: httpx.Client, who: Person, chat_id: str, folder: Path) -> Path:
    """Return an export as NDJSON with its log."""
    query = {"format": "ndjson", "log": "true"}
    response = web.get(f"/api/v1/chats/{chat_id}/export", params=query, headers=who.headers)
    file = folder / "chat.ndjson"
    file.write_bytes(response.content)
    return file


def verified(file: Path, keys: list[dict[str, Any]]) -> tuple[int, str]:
    """Return the exit code of `uamp verify` with keys, and what it prints."""
    key_file = file.with_name("keys.json")
    key_file.write_text(json.dumps({"keys": keys}))
    done = CliRunner().invoke(program, ["verify", str(file), "--keys", str(key_file)])
    return done.exit_code, done.output


def browser_result(
    text: str, keys: list[dict[str, Any]], shown: Iterable[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the findings of the pages' modules in an export and in the messages of a page."""
    documents = [{"text": text, "keys": keys, "shown": list(shown)}]
    (result,) = verified_by_node(documents, BROWSER)
    checked: dict[str, Any] = result
    return checked
