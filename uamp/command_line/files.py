"""`uamp export` and `uamp verify`: save a chat to a file, and check such a file."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports import (
    ExportCheck,
    begins_receipt,
    check_export,
    check_saved_receipt,
)
from uamp.client.exports.receipt import RECEIPT_BYTES_MAX
from uamp.command_line.completion import complete_chats
from uamp.command_line.options import client_of, exit_code, runs, server_options
from uamp.command_line.output import print_error, print_json, printable

if TYPE_CHECKING:
    from uamp.client.exports import SavedReceipt
    from uamp.client.exports.answers import ExportedAnswers
    from uamp.client.exports.log import ExportedLog


class _KeyFile(msgspec.Struct):
    """A JSON Web Key Set (RFC 7517 §5)."""

    keys: list[dict[str, Any]]


NOT_PROVEN: Final = 8
"""The exit code for an export that the keys do not prove, the same as for a changed export."""
_NO_LOG: Final = (
    "The file has no log: what is not signed is not verified, and messages may have been left out."
)
_NOT_IN_NAMES = re.compile(r"[^\w. -]+")


@click.command
@click.argument("chat", shell_complete=complete_chats)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Where to write it, `-` for standard output; by default the title of the chat.",
)
@server_options
@runs
async def export(
    chat: str, output: str | None, url: str | None, server: str | None, *, as_json: bool
) -> None:
    """Export a chat to an NDJSON file and check that it is complete.

    A file that was cut off in transfer is not kept; on standard output it ends without its last
    line, and the exit code is 8.
    """
    async with client_of(url, server) as client:
        found = await client.find_chat(chat)
        if output == "-":
            check = ExportCheck()
            out = sys.stdout.buffer
            async for line in client.export_lines(found.id):
                check.add(line)
                out.write(line)
            out.flush()
            check.finish()
            return
        name = _NOT_IN_NAMES.sub("_", found.title).strip(" .") or found.id
        path = Path(output or f"{name}.ndjson")
        summary = await client.export(found.id, path)
    if as_json:
        print_json({"file": str(path), "count": summary.count, "sha256": summary.sha256})
    else:
        click.echo(f"{path}: {summary.count} messages, SHA-256 {summary.sha256}")


@click.command
@click.argument("file", type=click.File("rb"))
@click.option(
    "--keys",
    type=click.File("rb"),
    help="The keys of the server, as /.well-known/jwks.json has them.",
)
@click.option(
    "--without-log",
    is_flag=True,
    help="Take a file without the log of its chat: only what is signed in it is proven.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON.")
def verify(file: BinaryIO, keys: BinaryIO | None, *, without_log: bool, as_json: bool) -> None:
    """Check that an export is complete and its answers, receipts and log are unchanged.

    FILE is an export as NDJSON or JSON, or a downloaded receipt, and may be `-`. Its count and
    SHA-256 show that nothing was cut off and no message changed by accident. The hash chain of the
    chat's log shows whether its messages are those that were written; its head is signed by the
    server, whose keys are needed to verify it. The answers are signed by their agents, the receipts
    by the server; without --keys they are verified with the keys in the file. With --keys the exit
    code is also 8 if the file has no log, if none of the keys signed the log's head, or if the head
    and the log do not cover everything.
    """
    try:
        begin = file.readline()
        if begins_receipt(begin):
            saved = check_saved_receipt(begin + file.read(RECEIPT_BYTES_MAX), _keys(keys))
            _print_receipt(saved, as_json=as_json)
            return
        summary = check_export(chain([begin] if begin else [], file), _keys(keys))
    except ExportCutError as error:
        print_error(error, as_json=as_json)
        click.get_current_context().exit(exit_code(error))
    if as_json:
        print_json(summary)
    else:
        title = printable(summary.title or summary.chat_id)
        click.echo(f"{title}: whole, {summary.count} messages, SHA-256 {summary.sha256}")
        if summary.log is not None:
            click.echo(_said(summary.log))
        elif keys is not None:
            click.echo(_NO_LOG)
        if summary.answers is not None:
            click.echo(_signed(summary.answers))
    is_proven = without_log if summary.log is None else summary.log.is_proven
    if keys is not None and not is_proven:
        click.get_current_context().exit(NOT_PROVEN)


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
        click.echo("The keys are those in the file: verify it with --keys.")


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
        return msgspec.json.decode(file.read(), type=_KeyFile).keys
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
    at = datetime.fromtimestamp(head.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    by = f"{head.server} at {at}, entry {head.seq}"
    if log.is_signed:
        return f"{text}. Its head is signed by {by}."
    return f"{text}. Its head says that it is signed by {by}: --keys has no key that verifies it."
