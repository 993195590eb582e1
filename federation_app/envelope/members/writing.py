"""New envelopes: the members of schema A.1, signed."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from federation_app.envelope.members.reading import Intent, written_time
from federation_app.envelope.signatures.signature import signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from federation_app.envelope.signatures.keys import EnvelopeSigner


def new_envelope(
    signer: EnvelopeSigner,
    *,
    to: Iterable[str],
    intent: Intent,
    content: str,
    now: datetime,
    type_: str = "text/plain",
    members: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a signed envelope from the signer's name; `members` are optional schema members.

    RFC 8785 and sorted JSON must write every value alike (`canonical`), so that receivers of either
    form can verify it.
    """
    return signed(
        {
            "id": f"urn:uuid:{uuid.uuid4()}",
            "ts": written_time(now),
            "from": signer.kid.partition("#")[0],
            "to": list(to),
            "intent": intent.value,
            "body": {"type": type_, "content": content},
            **(members or {}),
        },
        signer,
    )
