"""`uamp verify` of an export whose answers are signed, without a server and a network."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from uamp.command_line.verifying import verify

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("spooled")]

VECTORS = json.loads(
    (Path(__file__).parents[1] / "signatures" / "vectors.json").read_text(encoding="utf-8")
)
KEYS = VECTORS["keys"]
QUESTION = {"type": "message", "seq": 1, **VECTORS["question"]}
ANSWER = {
    "type": "message",
    "seq": 2,
    **VECTORS["answer"],
    "signature": VECTORS["algorithms"]["RS256"],
}


def export(*messages: dict[str, Any], keys: list[dict[str, Any]] | None = None) -> bytes:
    """Return an export whose checksum is that of what it has."""
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    end = {"type": "end", "count": len(messages), "sha256": hashlib.sha256(lines).hexdigest()}
    if keys is not None:
        end["keys"] = keys
    head = {"type": "chat", "id": "chat_1", "title": "Signed"}
    return b"".join([json.dumps(head).encode(), b"\n", lines, json.dumps(end).encode(), b"\n"])


def verified(
    tmp_path: Path, data: bytes, keys: list[dict[str, Any]] | None = None
) -> tuple[int, str]:
    """Return the exit code of `uamp verify` and what it printed."""
    file = tmp_path / "chat.ndjson"
    file.write_bytes(data)
    options = []
    if keys is not None:
        (tmp_path / "keys.json").write_text(json.dumps({"keys": keys}))
        options = ["--keys", str(tmp_path / "keys.json"), "--without-log"]
    done = CliRunner().invoke(verify, [str(file), *options])
    return done.exit_code, done.output


def test_answers_are_verified_with_given_keys_and_with_those_of_the_file(tmp_path: Path) -> None:
    code, output = verified(tmp_path, export(QUESTION, ANSWER), KEYS)
    assert (code, "The answers: 1 as signed." in output) == (0, True)
    code, output = verified(tmp_path, export(QUESTION, ANSWER, keys=KEYS))
    assert (code, "The keys come from the file itself" in output) == (0, True)
    retired = [{**key, "exp": 1_010} for key in KEYS]
    code, output = verified(tmp_path, export(QUESTION, ANSWER), retired)
    assert (code, "1 as signed, with a retired key." in output) == (0, True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"content": ANSWER["content"].replace("zw", "Zw")}, "differs from what the agent signed"),
        (
            {"signature": ANSWER["signature"][:-4] + "AAAA"},
            "The signature does not match this text",
        ),
        ({"signature": "eyJ..."}, "not a compact JWS"),
        ({"response_id": "resp_2"}, "differs from what the agent signed"),
    ],
)
def test_one_changed_byte_shows_though_the_checksum_was_made_anew(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    code, output = verified(tmp_path, export(QUESTION, {**ANSWER, **change}, keys=KEYS))
    assert (code, reason in output) == (8, True)


def test_messages_with_the_same_id_are_refused(tmp_path: Path) -> None:
    """Another reader may show the first text, where this one verifies the second."""
    forged = {**ANSWER, "content": "forged"}
    code, output = verified(tmp_path, export(QUESTION, forged, ANSWER, keys=KEYS))
    assert (code, "Two messages have the same id" in output) == (8, True)


def test_another_question_and_an_unknown_key_show(tmp_path: Path) -> None:
    other = {**QUESTION, "content": "Wie spat?"}
    code, output = verified(tmp_path, export(other, ANSWER, keys=KEYS))
    assert (code, "differs from the one that was answered" in output) == (8, True)
    code, output = verified(tmp_path, export(QUESTION, ANSWER, keys=KEYS), [KEYS[1]])
    assert (code, "not among the given keys" in output) == (8, True)
    code, output = verified(tmp_path, export(QUESTION, ANSWER, keys=["x"]))  # type: ignore[list-item]
    assert code == 8


def test_an_erased_answer_is_not_an_error_and_an_unsigned_one_is_not_mentioned(
    tmp_path: Path,
) -> None:
    gone = {"content": "", "content_items": [], "deleted_at": "2026-11-25T12:00:00Z"}
    code, output = verified(tmp_path, export(QUESTION, {**ANSWER, **gone}, keys=KEYS))
    assert (code, "The answers: 1 erased." in output) == (0, True)
    unsigned = {name: value for name, value in ANSWER.items() if name != "signature"}
    code, output = verified(tmp_path, export(QUESTION, unsigned))
    assert (code, "The answers" in output) == (0, False)
