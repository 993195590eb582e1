"""The hash chain of a log: its canonical form, its hashes, and what a check finds."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from uamp.logs.chain import (
    canonical,
    chain_hash,
    chain_start,
    entry_digest,
    hash_of,
    microseconds,
    payload_digest,
    time_of,
)
from uamp.logs.check import (
    PROBLEMS_MAX,
    Announced,
    LogCheck,
    LoggedEntry,
    LogProblem,
    LogProblemKind,
    LogSummary,
    MessageFacts,
    text_digest,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
CHAT = "chat_a"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_the_canonical_form_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e22, b"1e+22"),
        # What a database that keeps decimals gives back for the number before.
        (10**22, b"1e+22"),
        (-0.0, b"0"),
        (2**53, b"9007199254740992"),
        (2**60, b"1152921504606847000"),
        (10**400, b'"1' + b"0" * 400 + b'"'),
        ({"\ue000": 1, "\U00010000": 2}, '{"\U00010000":2,"\ue000":1}'.encode()),
        ([True, 1, None, "é\u2028\x1f"], '[true,1,null,"é\u2028\\u001f"]'.encode()),
    ],
)
def test_numbers_are_doubles_and_keys_are_in_the_order_of_utf_16(value: Any, text: bytes) -> None:
    assert canonical(value) == text


def test_a_reader_of_the_document_makes_the_same_hashes() -> None:
    """The hashes as docs/log-chain.md spells them, without this library."""
    payload = {"type": "message.created", "b": 1, "a": "x"}
    digest = hashlib.sha256(json.dumps(payload, sort_keys=True, separators=(",", ":")).encode())
    assert payload_digest(payload) == digest.digest()
    lines = f"message.created\nresp_1\n1767323045678901\n{digest.hexdigest()}\n"
    entry = hashlib.sha256(lines.encode()).digest()
    assert entry_digest("message.created", "resp_1", AT, digest.digest()) == entry
    start = hashlib.sha256(b"uamp chat log 1\nchat_a\n0\n").digest()
    assert chain_start(CHAT, 0) == start
    first = hashlib.sha256(start + (1).to_bytes(8, "big") + entry).digest()
    assert chain_hash(start, 1, entry) == first
    assert hash_of(first.hex()) == first
    assert hash_of(first.hex().upper()) is hash_of("0") is hash_of(None) is None


def log(count: int = 6, *, start: int = 0) -> list[LoggedEntry]:
    """Return a chained log: messages, the third of which is edited by the last entry."""
    entries = []
    previous = chain_start(CHAT, start)
    for seq in range(1, count + 1):
        message = {"id": f"msg_{seq}", "content": f"text {seq}"}
        payload: dict[str, Any] = {"message": message}
        event_type = "message.created"
        if seq == count:
            event_type = "message.edited"
            payload = {"message_id": "msg_3", "revision": 1, "content": "new"}
        digest = entry_digest(event_type, "", AT, payload_digest(payload))
        chained = None
        if seq > start:
            previous = chained = chain_hash(previous, seq, digest)
        entries.append(
            LoggedEntry(
                seq=seq, type=event_type, response_id="", at=AT, payload=payload, chain_hash=chained
            )
        )
    return entries


def checked(entries: list[LoggedEntry]) -> LogSummary:
    """Return the findings of a check in entries."""
    check = LogCheck(CHAT)
    for entry in entries:
        check.add_entry(entry)
    return check.finish()


def test_a_log_whose_chain_starts_late_is_intact() -> None:
    report = checked(log())
    assert report.is_intact
    assert (report.entries, report.unchained, report.chained_from, report.last_seq) == (6, 0, 1, 6)
    late = checked(log(start=2))
    assert late.is_intact
    assert (late.unchained, late.chained_from) == (2, 3)
    assert late.chain_hash != report.chain_hash


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "message.createe"},
        {"response_id": "resp"},
        {"at": AT.replace(microsecond=678902)},
        {"payload": {"message": {"id": "msg_3", "content": "text 4"}}},
        # JSON's 1e400, which has no canonical form.
        {"payload": {"message": {"id": "msg_3", "content": math.inf}}},
        {"chain_hash": b"\0" * 32},
    ],
)
def test_each_changed_field_shows_at_its_entry(changed: dict[str, Any]) -> None:
    entries = log()
    entries[2] = replace(entries[2], **changed)
    first = checked(entries).problems[0]
    assert first == LogProblem(kind=LogProblemKind.ENTRY_CHANGED, seq=3)


def test_entries_taken_out_put_in_or_exchanged_show() -> None:
    entries = log()
    report = checked([*entries[:2], *entries[3:]])
    assert report.problems == (LogProblem(kind=LogProblemKind.ENTRY_MISSING, seq=3),)
    without_first = checked(entries[1:])
    assert without_first.problems == (LogProblem(kind=LogProblemKind.ENTRY_MISSING, seq=1),)
    swapped = [*entries]
    swapped[2], swapped[3] = replace(entries[3], seq=3), replace(entries[2], seq=4)
    assert not checked(swapped).is_intact
    unchained = [*entries]
    unchained[2] = replace(entries[2], chain_hash=None)
    assert [problem.seq for problem in checked(unchained).problems] == [3, 4]


def test_an_erased_entry_leaves_the_chain_whole() -> None:
    entries = log()
    digest = payload_digest(entries[2].payload)
    entries[2] = replace(entries[2], payload={"message": {"id": "msg_3"}}, digest=digest)
    report = checked(entries)
    assert report.is_intact
    assert report.erased == 1
    entries[2] = replace(entries[2], digest=b"\1" * 32)
    assert checked(entries).problems[0].seq == 3


def test_the_head_shows_a_log_that_was_cut() -> None:
    entries = log()
    for checked_entries, head, kind in (
        (entries[:-1], entries[-1], LogProblemKind.ENTRY_MISSING),
        (entries, replace(entries[-1], chain_hash=b"\1" * 32), LogProblemKind.HEAD_CHANGED),
    ):
        check = LogCheck(CHAT)
        for entry in checked_entries:
            check.add_entry(entry)
        check.add_head(head.seq, head.chain_hash)
        assert check.finish().problems == (LogProblem(kind=kind, seq=6),)


def test_a_signed_head_of_another_hash_shows() -> None:
    entries = log()
    heads = {3: entries[2].chain_hash, 5: b"\1" * 32}
    check = LogCheck(CHAT)
    for entry in entries:
        check.add_entry(entry, signed=heads.get(entry.seq))
    assert check.finish().problems == (LogProblem(kind=LogProblemKind.CHECKPOINT_CHANGED, seq=5),)


def test_messages_are_compared_with_their_revisions() -> None:
    entries = log(start=1)
    deleted = {"type": "message.deleted", "message_id": "msg_4"}
    odd = {"message": "none"}
    check = LogCheck(CHAT)
    for entry in entries:
        check.add_entry(entry)
    for seq, (kind, payload) in enumerate(
        [("message.deleted", deleted), ("message.created", odd), ("message.edited", {})], start=7
    ):
        check.add_entry(LoggedEntry(seq=seq, type=kind, response_id="", at=AT, payload=payload))
    text = text_digest({"content": "text 3"})
    assert check.has_text("msg_3", seq=3, revision=0, text=text)
    assert not check.has_text("msg_3", seq=3, revision=1, text=text)
    assert not check.has_text("msg_3", seq=3, revision=2, text=text)
    assert not check.has_text("msg_9", seq=3, revision=0, text=text)
    # Before the chain nothing is known.
    assert check.has_text("msg_1", seq=1, revision=0, text=text)
    assert not check.has_text("msg_9", seq=0, revision=0, text=text)
    assert not check.has_text("msg_4", seq=1, revision=0, text=text)
    assert (check.last_revision("msg_3"), check.last_revision("msg_9")) == (1, None)
    assert (check.is_deleted("msg_4"), check.is_deleted("msg_3")) == (True, False)
    places = {message_id: entry.seq for message_id, entry in check.announced.items()}
    assert places == {f"msg_{n}": n for n in range(2, 6)}
    assert (check.last_seq, check.chain_hash) == (9, None)


def test_a_check_counts_all_problems_and_lists_the_first() -> None:
    check = LogCheck(CHAT)
    for seq in range(PROBLEMS_MAX + 5):
        check.add_problem(LogProblemKind.MESSAGE_MISSING, seq)
    report = check.finish()
    assert (len(report.problems), report.problem_count) == (PROBLEMS_MAX, PROBLEMS_MAX + 5)


def test_the_head_of_a_whole_log_agrees() -> None:
    check = LogCheck(CHAT)
    entries = log()
    for entry in entries:
        check.add_entry(entry)
    check.add_head(6, None)
    check.add_head(6, entries[-1].chain_hash)
    assert check.finish().is_intact


def test_times_are_counted_in_microseconds() -> None:
    assert time_of(microseconds(AT)) == AT
    with pytest.raises(OverflowError):
        time_of(10**20)


def test_what_was_written_before_the_chain_is_neither_vouched_for_nor_denied() -> None:
    text = text_digest({"content": "text 3"})
    empty = LogCheck(CHAT)
    assert empty.has_text("msg_3", seq=3, revision=0, text=text)
    assert empty.vouches_for("msg_3", seq=3, revision=0)
    check = LogCheck(CHAT)
    for entry in log(start=1):
        check.add_entry(entry)
    assert check.vouches_for("msg_1", seq=1, revision=0)
    assert check.vouches_for("msg_3", seq=3, revision=0)
    assert not check.vouches_for("msg_9", seq=3, revision=0)


def test_the_log_has_the_signatures_of_answers_that_its_chain_covers() -> None:
    check = LogCheck(CHAT)
    for seq, response, digest, chained in (
        (1, "resp_1", None, b"\1" * 32),
        (2, "resp_2", b"\2" * 32, b"\2" * 32),
        (3, "resp_3", None, None),
    ):
        check.add_entry(
            LoggedEntry(
                seq=seq,
                type="response.done",
                response_id=response,
                at=AT,
                payload={"signature": "a.b.c"},
                digest=digest,
                chain_hash=chained,
            )
        )
    assert dict(check.signatures.items()) == {"resp_1": "a.b.c"}


def test_the_transport_of_a_message_is_compared_where_it_is_known() -> None:
    facts = MessageFacts(
        seq=1,
        role="user",
        name="alice",
        response_id="",
        status="completed",
        created_at=1,
        reply_to="",
        thread="",
        also_in_chat=False,
        is_copy=False,
        transport="sse",
    )
    entry = Announced(facts=facts, sender_kind="user", sender_id="1", first_id="m", is_whole=True)
    assert entry.agrees(facts)
    # Exports do not have it.
    assert entry.agrees(replace(facts, transport=None))
    assert not entry.agrees(replace(facts, transport="websocket"))
