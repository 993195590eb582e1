"""Signed receipts, exports and pages, and the command that verifies them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
import pytest
from click.testing import CliRunner

from chat_app.log import chain
from chat_app.models import ChatEvent, Message
from payments_app.models import Transfer
from payments_app.spending import approvals
from tests.live_server import quick_agent
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.signatures.exports import verified
from tests.sessions_app.response.signatures.signed_answers import answered, history, keys_of
from tests.uamp.signatures.node_crypto import verified_by_node
from uamp.command_line.program import program
from uamp.signatures import check_answer, check_receipt

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.live_server import Dial, Person


def with_checksum(text: str, kind: str) -> str:
    """Return an export with the checksum of the messages that it has."""
    if kind == "json":
        export = json.loads(text)
        lines = [msgspec.json.encode(message) + b"\n" for message in export["messages"]]
        export["sha256"] = hashlib.sha256(b"".join(lines)).hexdigest()
        return json.dumps(export)
    lines = text.encode().splitlines(keepends=True)
    message_lines = [line for line in lines if line.startswith(b'{"type":"message"')]
    end = {**json.loads(lines[-1]), "sha256": hashlib.sha256(b"".join(message_lines)).hexdigest()}
    return b"".join(lines[:-1]).decode() + json.dumps(end) + "\n"


def test_a_receipt_is_signed_for_its_answer(
    dial: Dial, web: httpx.Client, alice: Person, tmp_path: Path
) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    approvals.approve(alice.user.pk, agent.pk, usd("1"))
    answered(dial, alice, "paid")
    row = Message.objects.get(role="assistant")
    path = f"/api/v1/chats/{row.chat_id}"
    (receipt,) = web.get(f"{path}/payments", headers=alice.headers).json()["data"]
    _, answer = history(web, alice, row.chat_id)
    keys = keys_of(web)
    verdict = check_receipt(receipt, keys, chat_id=row.chat_id, message=answer)
    assert (verdict.state, receipt["transfers"]) == (
        "valid",
        [Transfer.objects.get(kind="answer").pk],
    )
    assert check_receipt({**receipt, "amount": "0.24"}, keys).state == "changed"
    assert check_receipt(receipt, keys, message={**answer, "signature": "e30"}).state == "changed"
    # By another library, and in another language.
    header = jwt.get_unverified_header(receipt["document"])
    key = next(key for key in keys if key["kid"] == header["kid"])
    claims = jwt.decode(receipt["document"], jwt.PyJWK(key), algorithms=[key["alg"]])
    assert (header["typ"], key["uamp_owner"]) == ("receipt+jwt", "receipts")
    assert (claims["amount"], claims["transfers"]) == ("0.25", receipt["transfers"])
    document = {
        "kind": "receipt",
        "receipt": receipt,
        "message": answer,
        "chat_id": row.chat_id,
        "keys": keys,
    }
    changed = {**document, "receipt": {**receipt, "amount": "0.24"}}
    moved = {**document, "message": {**answer, "id": "msg_other"}}
    assert verified_by_node([document, changed, moved]) == [True, False, False]
    # In both kinds of export, and verified by the command with the published keys.
    for kind in ("ndjson", "json"):
        query = {"format": kind, "log": "true"}
        file = tmp_path / f"chat.{kind}"
        file.write_bytes(web.get(f"{path}/export", params=query, headers=alice.headers).content)
        # The head of the log is signed by then.
        keys = keys_of(web)
        code, output = verified(file, keys)
        assert (code, "The receipts: 1 as signed." in output) == (0, True), output
        assert "The answers: 1 as signed." in output
        # One character of the amount, and the checksum made anew.
        text = file.read_text().replace('"amount":"0.25"', '"amount":"0.24"')
        file.write_text(with_checksum(text, kind))
        code, output = verified(file, keys)
        assert (code, "Its receipt: The receipt differs from what the server signed" in output) == (
            8,
            True,
        )


def test_one_changed_byte_in_the_database_shows_in_the_command(
    dial: Dial, web: httpx.Client, alice: Person, tmp_path: Path
) -> None:
    """The byte is changed in the message and in the log, and the chain is computed anew."""
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    row = Message.objects.get(role="assistant")
    text = row.content.replace("w", "v", 1)
    Message.objects.filter(pk=row.pk).update(content=text)
    entries = list(ChatEvent.objects.filter(chat_id=row.chat_id).order_by("seq"))
    chat = row.chat
    chat.last_seq, chat.chain_hash = 0, None
    for entry in entries:
        if entry.seq == row.seq:
            entry.payload["message"]["content"] = text
        chain.extend(chat, entry)
        entry.save()
    chat.save()
    file = tmp_path / "chat.ndjson"
    query = {"format": "ndjson", "log": "true"}
    path = f"/api/v1/chats/{row.chat_id}/export"
    file.write_bytes(web.get(path, params=query, headers=alice.headers).content)
    code, output = verified(file, keys_of(web))
    assert (code, "It differs from what the agent signed." in output) == (8, True)


def test_an_export_has_signatures_and_keys(dial: Dial, web: httpx.Client, alice: Person) -> None:
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    chat_id = Message.objects.all()[0].chat_id
    path = f"/api/v1/chats/{chat_id}/export"
    lines = web.get(path, params={"format": "ndjson"}, headers=alice.headers).text.splitlines()
    chat, question, answer, end = map(json.loads, lines)
    assert answer["signature"] == done["signature"]
    verdict = check_answer(answer, end["keys"], chat_id=chat["id"], question=question)
    assert (verdict.state, verdict.request) == ("valid", "same")
    export = web.get(path, params={"format": "json"}, headers=alice.headers).json()
    assert export["keys"] == end["keys"]
    assert check_answer(export["messages"][1], export["keys"]).state == "valid"


def test_other_protocols_carry_the_signature(web: httpx.Client, alice: Person) -> None:
    quick_agent("signer", "echo")
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Over A2A"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = {**alice.headers, "A2A-Version": "1.0"}
    task = web.post("/agents/signer/a2a", json=body, headers=headers).json()["result"]["task"]
    completion_request = {
        "model": "signer",
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    path = "/agents/signer/chat/completions"
    stream = web.post(path, json=completion_request, headers=alice.headers).text
    _, _, after = stream.partition("data: [DONE]\n\n")
    assert after.startswith("event: response_signature\ndata: {")
    signature = json.loads(after.partition("data: ")[2])["signature"]
    response = web.post(
        "/agents/signer/responses", json={"model": "signer", "input": "Hi"}, headers=alice.headers
    ).json()
    question = {"id": "m1", "role": "user", "content": "Hi"}
    run = {"threadId": "t1", "runId": "r1", "messages": [question]}
    events = web.post("/agents/signer/agui", json=run, headers=alice.headers).text
    finished = json.loads(events.strip().rpartition("data: ")[2])
    params = {"messages": [{"role": "user", "content": "Hi"}]}
    prompt = {"jsonrpc": "2.0", "id": 1, "method": "prompt/submit", "params": params}
    acp = web.post("/agents/signer/acp", json=prompt, headers=alice.headers).json()
    ends = ChatEvent.objects.filter(type="response.done").order_by("created_at")
    stored = [end.payload["signature"] for end in ends]
    assert [task["metadata"]["uamp_signature"], signature] == stored[:2]
    assert response.get("signature") == stored[2], response
    assert finished["metadata"]["signature"] == stored[3], finished
    assert acp["result"]["_meta"]["uamp_signature"] == stored[4], acp


def test_a_shared_page_says_whether_an_answer_is_as_it_was_signed(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    chat_id = Message.objects.all()[0].chat_id
    response = web.post(f"/api/v1/chats/{chat_id}/share-links", json={}, headers=alice.headers)
    address = response.json()["url"]
    assert 'data-signature="valid"' in web.get(address).text
    row = Message.objects.get(role="assistant")
    Message.objects.filter(pk=row.pk).update(content=f"{row.content}.")
    assert 'data-signature="changed"' in web.get(address).text


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"name": "Dr Who"}, "changed"),
        ({"role": "user"}, "changed"),
        ({"signature": None}, "unsigned"),
    ],
    ids=["name", "role", "signature"],
)
def test_a_shared_page_states_what_became_of_an_answer(
    dial: Dial, web: httpx.Client, alice: Person, change: dict[str, Any], state: str
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    row = Message.objects.get(role="assistant")
    if "signature" in change:
        entry = ChatEvent.objects.get(type="response.done")
        del entry.payload["signature"]
        entry.save()
    else:
        Message.objects.filter(pk=row.pk).update(**change)
    path = f"/api/v1/chats/{row.chat_id}/share-links"
    address = web.post(path, json={}, headers=alice.headers).json()["url"]
    assert f'data-signature="{state}"' in web.get(address).text
    shared = web.get(address, params={"format": "json"}).json()["shared"]
    assert shared["messages"][1]["signature"] == state


def test_a_downloaded_receipt_is_verified_without_a_server(
    dial: Dial, web: httpx.Client, alice: Person, tmp_path: Path
) -> None:
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    answered(dial, alice, "paid")
    row = Message.objects.get(role="assistant")
    path = f"/api/v1/chats/{row.chat_id}/payments"
    (receipt,) = web.get(path, headers=alice.headers).json()["data"]
    _, answer = history(web, alice, row.chat_id)
    message = {name: answer[name] for name in ("id", "response_id", "signature")}
    saved = {"receipt": receipt, "chat_id": row.chat_id, "message": message, "keys": keys_of(web)}
    file = tmp_path / "receipt.json"

    def printed(**changes: Any) -> tuple[int, str]:
        file.write_text(json.dumps({**saved, **changes}, separators=(",", ":")))
        return verified(file, keys_of(web))

    code, output = printed()
    assert (code, output.startswith("0.25 USD for an answer by paid, ")) == (0, True), output
    # With the keys of the file alone, it says so.
    done = CliRunner().invoke(program, ["verify", str(file)])
    assert (done.exit_code, "verify it with --keys" in done.output) == (0, True)
    for changes in (
        {"receipt": {**receipt, "amount": "0.24"}},
        {"receipt": {**receipt, "transfers": []}},
        {"receipt": {name: receipt[name] for name in receipt if name != "document"}},
        {"message": {**message, "id": "msg_other"}},
        {"message": {**message, "signature": message["signature"][:-4] + "AAAA"}},
        {"chat_id": "chat_other"},
        {"chat_id": None},
        {"receipt": 7},
        {"keys": 7},
    ):
        code, output = printed(**changes)
        assert code == 8, (changes, output)
