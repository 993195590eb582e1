"""Submits the newest checkpoint to the witnesses that have an address (C2SP tlog-witness).

`submissions_due` and `take_answer` use the database, `submit` the network: no connection to the
database is held while a witness answers. Synchronous.
"""

from __future__ import annotations

import base64
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agents_app.outbound.guard import TooLarge, post
from agents_app.outbound.rules import Unreachable, current_policy
from chat_app.log_tree.cosigning import (
    NotAWitness,
    UnknownCheckpoint,
    add_cosignatures,
    addresses,
)
from chat_app.log_tree.proofs import consistency_proof
from chat_app.models import TreeCheckpoint, TreeCosignature
from uamp.logs.checkpoint import BadCheckpoint
from uamp.transparency.notes import NOTE_CHARS_MAX

if TYPE_CHECKING:
    from datetime import datetime

    from agents_app.outbound.guard import Posted

logger = logging.getLogger(__name__)

OK: Final = 200
CONFLICT: Final = 409
PATH: Final = "/add-checkpoint"
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,17})\n")


class Submission(NamedTuple):
    """A checkpoint for a witness, with the proof that it continues the tree of size `old`.

    `is_retry` is set after the witness has said which size it cosigned last.
    """

    witness: str
    url: str
    size: int
    note: str
    old: int
    proof: tuple[bytes, ...] = ()
    is_retry: bool = False

    @property
    def body(self) -> bytes:
        """The body of the request."""
        hashes = "".join(f"{base64.b64encode(node).decode()}\n" for node in self.proof)
        return f"old {self.old}\n{hashes}\n{self.note}".encode()


def submissions_due() -> list[Submission]:
    """Return a submission of the newest checkpoint for each witness that has not cosigned it.

    Witnesses without an address fetch it themselves. Raises TreeChanged.
    """
    named = [(witness.name, address) for witness, address in addresses().items() if address]
    newest = TreeCheckpoint.objects.order_by("-size").first() if named else None
    if newest is None:
        return []
    due = []
    for name, address in named:
        lines = TreeCosignature.objects.filter(witness=name).order_by("-checkpoint_id")
        old = lines.values_list("checkpoint_id", flat=True).first() or 0
        if old < newest.size:
            url = address.rstrip("/") + PATH
            due.append(
                _with_proof(
                    Submission(witness=name, url=url, size=newest.size, note=newest.note, old=old)
                )
            )
    return due


def submit(submission: Submission) -> Posted | None:
    """Return the answer of the witness, or None if it cannot be reached."""
    try:
        return post(
            submission.url,
            replace(current_policy(), max_bytes=NOTE_CHARS_MAX),
            body=submission.body,
            headers={"content-type": "text/plain; charset=utf-8"},
            reads_answer=True,
        )
    except (Unreachable, TooLarge) as error:
        logger.warning("the witness %s did not answer: %s", submission.witness, error)
        return None


def take_answer(submission: Submission, answer: Posted | None, now: datetime) -> Submission | None:
    """Store the cosignature in an answer.

    Returns the submission to repeat, once, if the witness cosigned another size last. Raises
    TreeChanged.
    """
    if answer is None:
        return None
    size = _SIZE.fullmatch(answer.data) if answer.status == CONFLICT else None
    if size is not None and not submission.is_retry and int(size[1]) <= submission.size:
        return _with_proof(submission._replace(old=int(size[1]), is_retry=True))
    if answer.status != OK:
        # A witness that cosigned a larger tree, or refuses the proof, has seen another tree.
        suffix = f", it cosigned {int(size[1])} leaves" if size is not None else ""
        logger.error(
            "the witness %s refused the checkpoint of %s leaves: status %s%s",
            submission.witness,
            submission.size,
            answer.status,
            suffix,
        )
        return None
    try:
        add_cosignatures(submission.note + answer.data.decode(), now)
    except (BadCheckpoint, NotAWitness, UnicodeDecodeError, UnknownCheckpoint):
        logger.exception("the witness %s did not return its cosignature", submission.witness)
    return None


def _with_proof(submission: Submission) -> Submission:
    """Return a submission with the proof from the size that the witness cosigned last."""
    proof = consistency_proof(submission.old, submission.size) if submission.old else None
    return submission._replace(proof=tuple(proof or ()))
