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
"""The exit code for a file that the keys do not prove, the same as for a changed file."""
_NO_LOG: Final = (
    "The file has no log: unsigned parts are not verified, and messages may have been left out."
)
_NOT_COMPARED: Final = (
    "Not compared with the prices that the agents signed: the list has no answers. Verify the chat,"
    " or a downloaded receipt."
)
_IN_MEMORY: Final = 10_000_000
_OWN_KEYS: Final = "The keys come from the file itself: verify it with --keys."


@click.command
@click.argument("source", metavar="FILE|URL")
@click.option(
    "--keys",
    type=click.File("rb"),
    help="The server's keys: the file at /.well-known/jwks.json.",
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
    help="Accept a file without the log of its chat: only its signed parts are proven.",
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

    FILE is an export as NDJSON or JSON, a downloaded receipt, an answer or the proof of a message;
    `-` is standard input. URL is the address of one of these, or of a chat or shared page: it is
    fetched and verified with the keys that its server publishes.

    The count and SHA-256 of an export show that nothing was cut off and no message changed by
    accident. The hash chain of the chat's log shows whether its messages are unchanged; its head is
    signed by the server and is in the server's tree. The answers are signed by
    their agents, the receipts by the server; without --keys they are verified with the keys in the
    file. With --keys or a URL the exit code is also 8 if the file has no log, if none of the keys
    signed the log's head, or if the head and the log do not cover everything.
    """
    try:
        required_witnesses = [Witness.parse(witness) for witness in witnesses]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--witness") from None
    try:
        with _source(source, _keys(keys)) as (file, public_keys):
            is_proven = _verify(
                file, public_keys, required_witnesses, without_log=without_log, as_json=as_json
            )
    except ClientError as error:
        print_error(error, as_json=as_json)
        click.get_current_context().exit(exit_code(error))
    if not is_proven:
        click.get_current_context().exit(NOT_PROVEN)


@contextmanager
def _source(
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
        result = f"The receipts: {_count_by_state(states)}."
        _print(states, f"{result}\n{_NOT_COMPARED}" if states else result, as_json=as_json)
        return not states
    if begins_shared_page(begin):
        page = check_shared_page(begin + file.read(PROOF_BYTES_MAX), keys)
        _print(page, _page_result(page), as_json=as_json)
        return True
    if begins_proof(begin):
        proof = check_message_proof(begin + file.read(PROOF_BYTES_MAX), keys, witnesses)
        _print(proof, _proof_result(proof, witnesses), as_json=as_json)
        is_witnessed = all(_is_witnessed(entry.tree, witnesses) for entry in proof.entries)
        return is_witnessed and (proof.is_proven or not keys)
    if begins_message(begin):
        answer = check_saved_message(begin + file.read(PROOF_BYTES_MAX), keys)
        _print(answer, f"The answer: {_answer_result(answer)}", as_json=as_json)
        return answer.claims is not None
    summary = check_export(chain([begin] if begin else [], file), keys, witnesses)
    log = summary.log
    title = summary.title or summary.chat_id
    lines = [f"{title}: complete, {summary.count} messages, SHA-256 {summary.sha256}"]
    if log is not None:
        lines += [_log_result(log), _in_tree(log.tree, witnesses)]
    elif keys:
        lines.append(_NO_LOG)
    if summary.answers is not None:
        lines.append(_signature_result(summary.answers))
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
        return "The head is not in its server's tree yet."
    text = f"The head is number {tree.index} of {tree.tree.size} in the tree {tree.tree.origin}"
    text += "." if tree.is_signed else ", which none of the given keys signed."
    for witness in witnesses:
        at = tree.cosigned.get(witness.name)
        status = "did not cosign the tree" if at is None else f"cosigned the tree at {_time(at)}"
        text += f" {witness.name} {status}."
    return text


def _proof_result(proof: ProvenMessage, witnesses: list[Witness]) -> str:
    """Describe, for people, a message whose proof holds."""
    entry = proof.entries[-1]
    edited = ", edited" if proof.is_edited else ""
    by = f"{entry.head.server} at {_time(entry.head.at)}"
    verb = "is signed by" if entry.is_signed else "says that it is signed by"
    quoted = "".join(f"\n> {line}" for line in proof.content.splitlines())
    lines = [
        f"{proof.name or proof.role}{edited}:{quoted}",
        f"The log of {proof.chat_id} has this message; its head {verb} {by}.",
        _in_tree(entry.tree, witnesses),
    ]
    if proof.answer is not None:
        lines.append(f"The answer: {_answer_result(proof.answer)}")
    if not proof.keys_given:
        lines.append(_OWN_KEYS)
    return "\n".join(lines)


def _page_result(page: CheckedPage) -> str:
    """Describe, for people, a shared page that is as the server signed it."""
    by = f"{page.claims.iss} at {_time(page.claims.iat)}"
    answers = f" The answers, as the server checked them: {_count_by_state(page.answers)}."
    return f"{page.title}: {page.messages} messages, as signed by {by}.{answers}"


def _answer_result(check: SignatureCheck) -> str:
    """Describe, for people, an answer whose signature is good, or that has none."""
    claims = check.claims
    if claims is None:
        return check.detail
    by = f"{claims.agent} of {claims.iss} at {_time(claims.iat)}"
    price = claims.price
    cost = "" if price is None else f", for {price.amount} {price.currency}"
    return f"{check.detail} It is by {by}{cost}."


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
    text = f"{claims.amount} {claims.currency} for an answer by {claims.agent}, {claims.paid_at}"
    if claims.refunded != "0":
        text += f", {claims.refunded} refunded"
    click.echo(printable(f"{text}: as {claims.iss} signed it."))
    if not saved.keys_given:
        click.echo(_OWN_KEYS)


def _signature_result(answers: ExportedAnswers) -> str:
    """Describe, for people, the signatures of answers and receipts that are all good."""
    text = f"The answers: {_count_by_state(answers.states)}."
    if answers.receipts:
        text += f" The receipts: {_count_by_state(answers.receipts)}."
    if answers.keys_given:
        return text
    return f"{text} The keys come from the file itself: verify them with --keys."


def _count_by_state(states: dict[str, int]) -> str:
    words = {"valid": "as signed", "rotated": "as signed, with a retired key"}
    parts = [f"{count} {words.get(state, state)}" for state, count in states.items()]
    return ", ".join(parts) or "none"


def _keys(file: BinaryIO | None) -> list[dict[str, Any]]:
    """Return the keys of a JSON Web Key Set."""
    if file is None:
        return []
    try:
        return msgspec.json.decode(file.read(), type=KeySet).keys
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"This is not a JSON Web Key Set: {error}") from None


def _log_result(log: ExportedLog) -> str:
    """Describe, for people, the log of an export without any sign of a change."""
    summary = log.summary
    text = f"The log: {'not changed, ' if log.is_compared else ''}{summary.entries} entries"
    if summary.erased:
        text += f", {summary.erased} of them erased or withheld"
    if summary.unchained:
        text += f", {summary.unchained} of them outside the chain"
    if log.unverified:
        text += f". {log.unverified} messages are not verified: the log does not have their text"
    if log.absent:
        text += f". {log.absent} messages of the log are not in the file"
    if log.unsigned:
        text += f". {log.unsigned} entries after the signed head are not signed"
    head = log.checkpoint
    if head is None:
        return f"{text}. It has no signed head."
    by = f"{head.server} at {_time(head.at)}, entry {head.seq}"
    if log.is_signed:
        return f"{text}. Its head is signed by {by}."
    return f"{text}. Its head says that it is signed by {by}, but --keys has no key to verify it."
