"""Takes the cosignatures of the witnesses that the operator configured (UAMP_WITNESSES)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from chat_app.models import TreeCheckpoint, TreeCosignature
from uamp.logs.checkpoint import BadCheckpoint
from uamp.transparency.notes import Witness, cosignatures, cosigned_at, read_note

if TYPE_CHECKING:
    from datetime import datetime

EARLY_SECONDS = 300
"""How far the clock of a witness may be ahead of the server's."""


class UnknownCheckpoint(Exception):
    """The server signed no checkpoint with this text."""


class NotAWitness(Exception):
    """No line of the note is the valid cosignature of a configured witness."""


def witnesses() -> list[Witness]:
    """Return the witnesses of UAMP_WITNESSES."""
    return list(addresses())


def addresses() -> dict[Witness, str]:
    """Return the witnesses with their addresses, "" for one that fetches checkpoints itself."""
    by_witness = {}
    for item in settings.UAMP_WITNESSES:
        key, _, address = item.partition(" ")
        by_witness[Witness.parse(key)] = address.strip()
    return by_witness


def add_cosignatures(note: str, now: datetime) -> TreeCheckpoint:
    """Store the cosignatures in a note of one of the server's checkpoints, and return that one.

    A witness that cosigned it before is not stored again. Raises BadCheckpoint for another text
    than that of a note, UnknownCheckpoint and NotAWitness.
    """
    signed_note = read_note(note)
    row = TreeCheckpoint.objects.filter(size=signed_note.head.size).first()
    if row is None or read_note(row.note).head != signed_note.head:
        raise UnknownCheckpoint
    lines = cosignatures(signed_note, witnesses())
    if not lines:
        raise NotAWitness
    if any(cosigned_at(line) > now.timestamp() + EARLY_SECONDS for line in lines.values()):
        raise BadCheckpoint("The cosignature is dated in the future.")
    TreeCosignature.objects.bulk_create(
        [
            TreeCosignature(checkpoint=row, witness=name, line=line.line, created_at=now)
            for name, line in lines.items()
        ],
        ignore_conflicts=True,
    )
    return row
