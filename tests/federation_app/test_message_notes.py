"""Texts that are shortened, for an envelope or for a message, with a note of where the rest is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.members.reading import Intent
from federation_app.guests.posts import sign
from federation_app.message_notes import is_same_text, missing_note, shorten, with_note

if TYPE_CHECKING:
    from tests.federation_app.peer import ForeignPeer

pytestmark = pytest.mark.django_db(transaction=True)
NOTE = "\n\n[Shortened; the full text is on chat.example]"


def sent_text(raw: bytes) -> str:
    """Return the text of an act in an envelope."""
    content = msgspec.json.decode(raw)["body"]["content"]
    return str(msgspec.json.decode(content)["text"])


@pytest.mark.parametrize("text", ["\x01", "漢", '"', "a", "👍\n"])
@pytest.mark.parametrize("kib", [None, 8, 4096])
def test_an_envelope_has_as_much_of_its_text_as_the_peer_accepts(
    text: str, kib: int | None, peer: ForeignPeer
) -> None:
    if kib is not None:
        peer.row.manifest = {"limits": {"max_body_kb": kib}}
    limit = 8 * 1024 if kib == 8 else ENVELOPE_BYTES
    members: dict[str, Any] = {"act": "edit", "chat": "chat_1", "message": "msg_1"}
    long = text * ENVELOPE_BYTES
    raw = sign(peer.row, Intent.INFORM, {**members, "text": long}).raw
    assert limit - 16 < len(raw) <= limit
    assert sent_text(raw).endswith(NOTE)
    assert is_same_text(sent_text(raw), long)
    raw = sign(peer.row, Intent.INFORM, {**members, "text": text * 100}).raw
    assert sent_text(raw) == text * 100


def test_a_text_that_is_shortened_twice_keeps_its_notes() -> None:
    files = missing_note(2, "chat.example")
    notes = f"\n\n[Shortened; the full text is on far.example]\n\n{files}"
    text = with_note("x" * 500, files)
    for room in (400, 300):
        text = shorten(text, "far.example" if room == 400 else "chat.example", room=room, size=len)
        assert text == "x" * (room - len(notes)) + notes


def test_a_shortened_text_keeps_its_first_line_breaks() -> None:
    text = "\n\n" + "x" * 500
    assert is_same_text(shorten(text, "chat.example", room=100, size=len), text)
    assert shorten("\n\nx", "chat.example", room=len(NOTE), size=len) == NOTE.strip()


def test_only_a_beginning_with_the_note_counts_as_the_same_text() -> None:
    assert is_same_text("whole", "whole")
    assert is_same_text(f"wh{NOTE}", "whole")
    for other in ("wh", f"who else{NOTE}", f"wh\n\n{missing_note(1, 'chat.example')}", ""):
        assert not is_same_text(other, "whole")
