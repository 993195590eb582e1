"""One byte that is changed in the database shows, with a sentence for each kind of row."""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from chat_app.log import chain
from chat_app.log.deletions import without_output
from chat_app.log.verification import entries_after
from chat_app.models import Chat, ChatEvent, LogCheckpoint, Message
from payments_app.models import Entry
from payments_app.spending import approvals
from sessions_app import changed_answers
from sessions_app.data_rights.erasure import erase_person
from sessions_app.models import Response
from tests.live_server import quick_agent, shared_chat
from tests.payments_app.ledger.test_audit import tamper
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.signatures import exports
from tests.sessions_app.response.signatures.exports import browser_result, verified
from tests.sessions_app.response.signatures.signed_answers import answered, history, keys_of
from uamp.logs.chain import payload_digest
from uamp.signatures import check_answer, check_receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import httpx

    from tests.live_server import Dial, Person


@pytest.fixture
def paid_answer(dial: Dial, alice: Person) -> Message:
    """Return an answer that alice paid."""
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    answered(dial, alice, "paid", "Hello world")
    return Message.objects.get(role="assistant")


def exported(web: httpx.Client, who: Person, chat_id: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of `uamp verify` of an export with its log, and what it prints."""
    return verified(exports.exported(web, who, chat_id, folder), keys_of(web))


def browser_verdict(
    folder: Path, web: httpx.Client, shown: Iterable[dict[str, Any]] = ()
) -> tuple[str, set[str]]:
    """Return a page's verdict about the last export, and the kinds of problems."""
    result = browser_result((folder / "chat.ndjson").read_text(), keys_of(web), shown)
    return result["verdict"], {problem["kind"] for problem in result["problems"]}


def verified_rows(chat_id: str) -> str:
    """Return the output of `manage.py audit_log` for a chat."""
    output = StringIO()
    try:
        call_command("audit_log", chat_id, stdout=output)
    except CommandError as error:
        output.write(str(error))
    return output.getvalue()


def test_nothing_was_changed(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, "as signed" in output) == (0, True), output
    assert browser_verdict(tmp_path, web) == ("unchanged", set())
    assert verified_rows(paid_answer.chat_id).endswith("No log was changed.\n")


def test_a_changed_message_shows(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    text = paid_answer.content.replace("w", "v", 1)
    Message.objects.filter(pk=paid_answer.pk).update(content=text)
    sentence = "The message differs from the one in the log."
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, sentence in output) == (8, True), output
    assert browser_verdict(tmp_path, web) == (
        "changed",
        {"message_changed", "answer_changed"},
    )
    assert f"message_changed. {sentence}" in verified_rows(paid_answer.chat_id)
    _, answer = history(web, alice, paid_answer.chat_id)
    verdict = check_answer(answer, keys_of(web))
    assert (verdict.state, verdict.detail) == ("changed", "It differs from what the agent signed.")


def remove_newest(chat_id: str) -> None:
    Message.objects.filter(chat_id=chat_id).latest("seq").delete()


def remove_first(chat_id: str) -> None:
    Message.objects.filter(chat_id=chat_id).earliest("seq").delete()


def remove_all(chat_id: str) -> None:
    Message.objects.filter(chat_id=chat_id).delete()


def claim_an_erasure(chat_id: str) -> None:
    """Leave only the digest of a question, which fits any text."""
    entry = ChatEvent.objects.filter(chat_id=chat_id, type="message.created").earliest("seq")
    entry.erased_digest = payload_digest(entry.payload)
    entry.save()


def remove_the_chain(chat_id: str) -> None:
    ChatEvent.objects.filter(chat_id=chat_id).update(chain_hash=None)
    Chat.objects.filter(pk=chat_id).update(chain_hash=None, chain_seq=None)
    LogCheckpoint.objects.filter(chat_id=chat_id).delete()


@pytest.mark.parametrize(
    "change", [remove_newest, remove_first, remove_all, claim_an_erasure, remove_the_chain]
)
def test_an_unverifiable_export_is_not_a_proof(
    web: httpx.Client,
    alice: Person,
    paid_answer: Message,
    tmp_path: Path,
    change: Callable[[str], None],
) -> None:
    change(paid_answer.chat_id)
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, "complete" in output) == (8, True), output
    assert browser_verdict(tmp_path, web) == ("incomplete", set())


def test_messages_whose_log_was_removed_are_not_confirmed(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    """The server signs the head of the empty log, and exports nothing; a page has the messages."""
    chat_id = paid_answer.chat_id
    shown = history(web, alice, chat_id)
    ChatEvent.objects.filter(chat_id=chat_id).delete()
    LogCheckpoint.objects.filter(chat_id=chat_id).delete()
    Chat.objects.filter(pk=chat_id).update(last_seq=0, chain_seq=0, chain_hash=bytes(32))
    code, output = exported(web, alice, chat_id, tmp_path)
    assert (code, "0 messages" in output) == (0, True), output
    assert browser_verdict(tmp_path, web, shown) == ("incomplete", set())


def test_a_changed_question_shows(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    question = Message.objects.get(chat_id=paid_answer.chat_id, role="user")
    Message.objects.filter(pk=question.pk).update(content=f"{question.content}?")
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert code == 8, output
    kinds = {"message_changed", "question_changed"}
    assert browser_verdict(tmp_path, web) == ("changed", kinds)


def test_a_deleted_answer_was_not_changed(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    """Its signature is withheld with its text, and its receipt names no signature."""
    path = f"/api/v1/messages/{paid_answer.pk}"
    assert web.delete(path, headers=alice.headers).status_code == 204
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, "erased" in output) == (0, True), output
    assert browser_verdict(tmp_path, web) == ("unchanged", set())
    assert verified_rows(paid_answer.chat_id).endswith("No log was changed.\n")
    _, answer = history(web, alice, paid_answer.chat_id)
    assert (answer["signature"], answer["stored_output_hash"]) == (None, None)
    verdict = check_answer(answer, keys_of(web))
    assert (verdict.state, verdict.is_good) == ("erased", True)
    (receipt,) = web.get(
        f"/api/v1/chats/{paid_answer.chat_id}/payments", headers=alice.headers
    ).json()["data"]
    assert check_receipt(receipt, keys_of(web), message=answer).state == "valid"


@pytest.mark.parametrize("kind", ["message.created", "response.done"])
def test_a_changed_event_shows(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path, kind: str
) -> None:
    entry = ChatEvent.objects.filter(chat_id=paid_answer.chat_id, type=kind).latest("seq")
    text = json.dumps(entry.payload)
    entry.payload = json.loads(text.replace("world", "vorld", 1))
    assert json.dumps(entry.payload) != text
    entry.save()
    sentence = "The entry was changed, or inserted later."
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, sentence in output) == (8, True), output
    assert f"entry_changed. {sentence}" in verified_rows(paid_answer.chat_id)
    # The message differs from an entry that announces another text.
    others = {"message_changed"} if kind == "message.created" else set()
    assert browser_verdict(tmp_path, web) == ("changed", {"entry_changed"} | others)


@pytest.mark.parametrize("column", ["output", "emptied", "usage", "no usage"])
def test_a_changed_response_shows(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path, column: str
) -> None:
    row = Response.objects.get(pk=paid_answer.response_id)
    if column == "output":
        row.output[0]["text"] = row.output[0]["text"].replace("w", "v", 1)
    elif column == "emptied":
        row.output = []
    elif column == "no usage":
        row.usage = None
    else:
        usage = row.usage or {}
        row.usage = {**usage, "cost": {**usage["cost"], "total_cost": 0.24}}
    row.save()
    report = verified_rows(paid_answer.chat_id)
    sentence = "The stored answer or its cost differs from the log."
    assert f"answer_changed. {sentence}" in report
    assert "1 chats were changed" in report
    part = "response" if column in {"output", "emptied"} else "usage or cost"
    sentence = f"The stored {part} differs from what the agent signed."
    _, answer = history(web, alice, paid_answer.chat_id)
    verdict = check_answer(answer, keys_of(web))
    assert (verdict.state, verdict.detail) == ("changed", sentence)
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, sentence in output) == (8, True), output
    kind = "response_changed" if part == "response" else "usage_changed"
    assert browser_verdict(tmp_path, web) == ("changed", {kind})


def test_an_answer_emptied_after_a_name_was_erased_beside_it_shows(
    web: httpx.Client, alice: Person, paid_answer: Message
) -> None:
    entry = ChatEvent.objects.get(response_id=paid_answer.response_id, type="response.done")
    chain.erase(entry, entry.payload)
    entry.save()
    assert verified_rows(paid_answer.chat_id).endswith("No log was changed.\n")
    Response.objects.filter(pk=paid_answer.response_id).update(output=[])
    assert "answer_changed." in verified_rows(paid_answer.chat_id)
    _, answer = history(web, alice, paid_answer.chat_id)
    sentence = "The stored response differs from what the agent signed."
    assert check_answer(answer, keys_of(web)).detail == sentence


def test_an_answer_that_is_erased_during_a_check_was_not_changed(
    paid_answer: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    def erasing(*args: Any) -> Iterator[list[ChatEvent]]:
        for page in entries_after(*args):
            for entry in ChatEvent.objects.filter(response_id=paid_answer.response_id):
                if entry.type in changed_answers.ENDS:
                    chain.erase(entry, without_output(entry.payload))
                    entry.save()
            Response.objects.filter(pk=paid_answer.response_id).update(output=[])
            yield page

    monkeypatch.setattr(changed_answers, "entries_after", erasing)
    seq = ChatEvent.objects.filter(chat_id=paid_answer.chat_id).latest("seq").seq
    assert list(changed_answers.changed_answers(paid_answer.chat_id, last_seq=seq)) == []


def test_a_changed_price_shows(
    web: httpx.Client, alice: Person, paid_answer: Message, tmp_path: Path
) -> None:
    """The server signs its receipt when it is read: the price that the agent signed shows it."""
    entries = Entry.objects.filter(transfer__response_id=paid_answer.response_id)
    table = connection.ops.quote_name(Entry._meta.db_table)
    for entry in entries:
        cut = entry.amount * 24 // 25
        with transaction.atomic():
            tamper(f"UPDATE {table} SET amount = {cut} WHERE id = {entry.pk}")  # noqa: S608 numbers
    path = f"/api/v1/chats/{paid_answer.chat_id}/payments"
    (receipt,) = web.get(path, headers=alice.headers).json()["data"]
    assert receipt["amount"] == "0.24"
    _, answer = history(web, alice, paid_answer.chat_id)
    verdict = check_receipt(receipt, keys_of(web), message=answer)
    sentence = "The agent signed a different price: 0.25 USD."
    assert (verdict.state, verdict.detail) == ("changed", sentence)
    code, output = exported(web, alice, paid_answer.chat_id, tmp_path)
    assert (code, sentence in output) == (8, True), output
    assert browser_verdict(tmp_path, web) == ("changed", {"price_changed"})
    with pytest.raises(CommandError, match="The ledger does not add up"):
        call_command("audit_ledger")


def test_the_erasure_of_a_person_leaves_the_log_intact(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    quick_agent("signer", "echo")
    chat = shared_chat(alice, bob, agents=("signer",))
    with dial(bob) as client:
        client.create_session(chat=chat.pk, agent="signer")
        client.answer("@signer a secret of mine")
    assert verified_rows(chat.pk).endswith("No log was changed.\n")
    erase_person(bob.user, reason="asked")
    # The agent's words stay, and are still as it signed them.
    question, answer = history(web, alice, chat.pk)
    assert "secret" not in json.dumps(question)
    event = ChatEvent.objects.get(chat=chat, seq=question["seq"])
    assert ("secret" in json.dumps(event.payload), event.erased_digest is None) == (False, False)
    verdict = check_answer(answer, keys_of(web), chat_id=chat.pk, question=question)
    assert (verdict.state, verdict.request) == ("valid", "erased")
    assert verified_rows(chat.pk).endswith("No log was changed.\n")
