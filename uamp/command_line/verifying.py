"""`uamp verify`: check a file, or what a URL shows, against the signatures of its server."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

import click
import msgspec

from uamp.client.errors import ClientError
from uamp.client.exports import (
    begins_message,
    begins_proof,
    begins_receipt,
    begins_receipts,
    begins_shared_page,
    check_export,
    check_message_proof,
    check_receipts,
    check_saved_message,
    check_saved_receipt,
    check_shared_page,
)
from uamp.client.exports.message import PROOF_BYTES_MAX
from uamp.client.exports.receipt import RECEIPT_BYTES_MAX
from uamp.command_line.fetching import KeySet, fetch, is_url
from uamp.command_line.options import exit_code
from uamp.command_line.output import print_error, print_json, printable
from uamp.transparency.notes import Witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uamp.client.exports import CheckedPage, ProvenMessage, SavedReceipt
    from uamp.client.exports.answers import ExportedAnswers
    from uamp.client.exports.log import ExportedLog
    from uamp.signatures import SignatureCheck
    from uamp.transparency.proofs import LoggedHead

NOT_PROVEN: Final = 8
"""The exit code for what the keys do not prove, the same as for something changed."""
_NO_LOG: Final = (
    "The file has no log: what is not signed is not verified, and messages may have been left out."
)
_IN_MEMORY: Final = 10_000_000
_OWN_KEYS: Final = "The keys are those in the file: verify it with --keys."


@click.command
@click.argument("source", metavar="FILE|URL")
@click.option(
    "--keys",
    type=click.File("rb"),
    help="The keys of the server, as /.well-known/jwks.json has them.",
)
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    metavar="KEY",
    help="The verifier key of a witness that must have cosigned the server's tree.",
)
@click.option(
    "--without-log",
    is_flag=True,
    help="Take a file without the log of its chat: only what is signed in it is proven.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON.")
def verify(
    source: str,
    keys: BinaryIO | None,
    witnesses: tuple[str, ...],
    *,
    without_log: bool,
    as_json: bool,
) -> None:
    """Check that an export is complete and its answers, receipts and log are unchanged.

    FILE is an export as NDJSON or JSON, a downloaded receipt, an answer or the proof of a message,
    and may be `-`. URL is the address of one of these, or of a chat or shared page: it is fetched
    and verified with the keys that its server publishes.

    The count and SHA-256 of an export show that nothing was cut off and no message changed by
    accident. The hash chain of the chat's log shows whether its messages are those that were
    written; its head is signed by the server and is in the server's tree. The answers are signed by
    their agents, the receipts by the server; without --keys they are verified with the keys in the
    file. With --keys or a URL the exit code is also 8 if the file has no log, if none of the keys
    signed the log's head, or if the head and the log do not cover everything.
    """
    try:
        known = [Witness.parse(one) for one in witnesses]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--witness") from None
    try:
        with _opened(source, _keys(keys)) as (file, given):
            is_proven = _verify(file, given, known, without_log=without_log, as_json=as_json)
    except ClientError as error:
        print_error(error, as_json=as_json)
        click.get_current_context().exit(exit_code(error))
    if not is_proven:
        click.get_current_context().exit(NOT_PROVEN)


@contextmanager
def _opened(
    source: str, keys: list[dict[str, Any]]
) -> Iterator[tuple[IO[bytes], list[dict[str, Any]]]]:
    """Open a file, or fetch a URL, and yield it with the keys: the given ones come first."""
    if is_url(source):
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as fetched:
            published = asyncio.run(fetch(source, fetched))
            fetched.seek(0)
            yield fetched, keys or published
    elif source == "-":
        yield sys.stdin.buffer, keys
    else:
        try:
            file = Path(source).open("rb")  # noqa: SIM115 closed below
        except OSError as error:
            raise click.BadParameter(f"{source}: {error.strerror}") from None
        with file:
            yield file, keys


def _verify(
    file: IO[bytes],
    keys: list[dict[str, Any]],
    witnesses: list[Witness],
    *,
    without_log: bool,
    as_json: bool,
) -> bool:
    """Check a file of any kind, print the result, and return whether it is proven."""
    begin = file.readline(PROOF_BYTES_MAX)
    if begins_receipt(begin):
        saved = check_saved_receipt(begin + file.read(RECEIPT_BYTES_MAX), keys)
        _print_receipt(saved, as_json=as_json)
        return True
    if begins_receipts(begin):
        states = check_receipts(begin + file.read(PROOF_BYTES_MAX), keys)
        _print(states, f"The receipts: {_counted(states)}.", as_json=as_json)
        return True
    if begins_shared_page(begin):
        page = check_shared_page(begin + file.read(PROOF_BYTES_MAX), keys)
        _print(page, _page(page), as_json=as_json)
        return True
    if begins_proof(begin):
        found = check_message_proof(begin + file.read(PROOF_BYTES_MAX), keys, witnesses)
        _print(found, _proven(found, witnesses), as_json=as_json)
        is_witnessed = all(_is_witnessed(entry.tree, witnesses) for entry in found.entries)
        return is_witnessed and (found.is_proven or not keys)
    if begins_message(begin):
        answer = check_saved_message(begin + file.read(PROOF_BYTES_MAX), keys)
        _print(answer, f"The answer: {_answer(answer)}", as_json=as_json)
        return answer.claims is not None
    summary = check_export(chain([begin] if begin else [], file), keys, witnesses)
    log = summary.log
    title = summary.title or summary.chat_id
    lines = [f"{title}: whole, {summary.count} messages, SHA-256 {summary.sha256}"]
    if log is not None:
        lines += [_said(log), _in_tree(log.tree, witnesses)]
    elif keys:
        lines.append(_NO_LOG)
    if summary.answers is not None:
        lines.append(_signed(summary.answers))
    _print(summary, "\n".join(filter(None, lines)), as_json=as_json)
    is_witnessed = _is_witnessed(None if log is None else log.tree, witnesses)
    is_proven = without_log if log is None else log.is_proven
    return is_witnessed and (is_proven or not keys)


def _print(result: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        click.echo(printable(text))


def _is_witnessed(tree: LoggedHead | None, witnesses: list[Witness]) -> bool:
    """Return whether each of the witnesses has cosigned the tree."""
    cosigned = {} if tree is None else tree.cosigned
    return all(witness.name in cosigned for witness in witnesses)


def _in_tree(tree: LoggedHead | None, witnesses: list[Witness]) -> str:
    """Describe, for people, the place of a log head in the tree of its server."""
    if tree is None:
        return "The head is in no tree of its server yet."
    text = f"The head is number {tree.index} of {tree.tree.size} in the tree {tree.tree.origin}"
    text += "." if tree.is_signed else ", which no given key signed."
    for witness in witnesses:
        at = tree.cosigned.get(witness.name)
        seen = "did not cosign the tree" if at is None else f"cosigned the tree at {_time(at)}"
        text += f" {witness.name} {seen}."
    return text


def _proven(found: ProvenMessage, witnesses: list[Witness]) -> str:
    """Describe, for people, a message whose proof holds."""
    last = found.entries[-1]
    edited = ", edited" if found.is_edited else ""
    by = f"{last.head.server} at {_time(last.head.at)}"
    said = "is signed by" if last.is_signed else "says that it is signed by"
    quoted = "".join(f"\n> {line}" for line in found.content.splitlines())
    lines = [
        f"{found.name or found.role}{edited}:{quoted}",
        f"The log of {found.chat_id} has this message; its head {said} {by}.",
        _in_tree(last.tree, witnesses),
    ]
    if found.answer is not None:
        lines.append(f"The answer: {_answer(found.answer)}")
    if not found.keys_given:
        lines.append(_OWN_KEYS)
    return "\n".join(lines)


def _page(page: CheckedPage) -> str:
    """Describe, for people, a shared page that is as the server signed it."""
    by = f"{page.claims.iss} at {_time(page.claims.iat)}"
    answers = f" The answers, as the server checked them: {_counted(page.answers)}."
    return f"{page.title}: {page.messages} messages, as signed by {by}.{answers}"


def _answer(found: SignatureCheck) -> str:
    """Describe, for people, an answer whose signature is good, or that has none."""
    claims = found.claims
    if claims is None:
        return found.detail
    by = f"{claims.agent} of {claims.iss} at {_time(claims.iat)}"
    price = claims.price
    cost = "" if price is None else f", for {price.amount} {price.currency}"
    return f"{found.detail} It is by {by}{cost}."


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"


def _print_receipt(saved: SavedReceipt, *, as_json: bool) -> None:
    """Print the verified facts of a receipt."""
    if as_json:
        print_json(saved)
        return
    claims = saved.check.claims
    if claims is None:
        raise TypeError(saved)
    paid = f"{claims.amount} {claims.currency} for an answer of {claims.agent}, {claims.paid_at}"
    if claims.refunded != "0":
        paid += f", {claims.refunded} refunded"
    click.echo(printable(f"{paid}: as {claims.iss} signed it."))
    if not saved.keys_given:
        click.echo(_OWN_KEYS)


def _signed(answers: ExportedAnswers) -> str:
    """Describe, for people, the signatures of answers and receipts that are all good."""
    text = f"The answers: {_counted(answers.states)}."
    if answers.receipts:
        text += f" The receipts: {_counted(answers.receipts)}."
    if answers.keys_given:
        return text
    return f"{text} The keys are those in the file: verify them with --keys."


def _counted(states: dict[str, int]) -> str:
    words = {"valid": "as signed", "rotated": "as signed, with a retired key"}
    counts = [f"{count} {words.get(state, state)}" for state, count in states.items()]
    return ", ".join(counts) or "none"


def _keys(file: BinaryIO | None) -> list[dict[str, Any]]:
    """Return the keys of a JSON Web Key Set."""
    if file is None:
        return []
    try:
        return msgspec.json.decode(file.read(), type=KeySet).keys
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"It is no JSON Web Key Set: {error}") from None


def _said(log: ExportedLog) -> str:
    """Describe, for people, the log of an export without any sign of a change."""
    found = log.summary
    text = f"The log: {'not changed, ' if log.is_compared else ''}{found.entries} entries"
    if found.erased:
        text += f", {found.erased} of them erased or withheld"
    if found.unchained:
        text += f", {found.unchained} of them in no chain"
    if log.unverified:
        text += f". {log.unverified} messages are not verified: the log does not have their text"
    if log.absent:
        text += f". {log.absent} messages of the log are not in the file"
    if log.unsigned:
        text += f". {log.unsigned} entries after the signed head are signed by no key"
    head = log.checkpoint
    if head is None:
        return f"{text}. It has no signed head."
    by = f"{head.server} at {_time(head.at)}, entry {head.seq}"
    if log.is_signed:
        return f"{text}. Its head is signed by {by}."
    return f"{text}. Its head says that it is signed by {by}: --keys has no key that verifies it."
