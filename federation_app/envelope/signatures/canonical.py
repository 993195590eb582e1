"""The canonical form of an envelope, and the digest that is signed (envelope §4.2).

Keys in order, UTF-8, no spaces, without `sig`: RFC 8785. The text of §4.2 is shorter than that RFC
and lets other writers sort by code points and keep the form of numbers. `naive` is what they write.
Both forms are injective on what `limits.load` accepts, so that a digest of either names one value.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import rfc8785

from federation_app.envelope.errors import malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNATURE_MEMBER: Final = "sig"


def canonical(value: Any) -> bytes:
    """Return a JSON value as RFC 8785 writes it; raises EnvelopeError for what it cannot write."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise malformed(f"It has no canonical form: {error}") from None


def naive(value: Any) -> bytes:
    """Return a JSON value with sorted keys and without spaces, as most JSON libraries write it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def without_signature(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an envelope is signed."""
    return {name: value for name, value in envelope.items() if name != SIGNATURE_MEMBER}


def digest(envelope: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical form of an envelope, in lower-case hex."""
    return hashlib.sha256(canonical(without_signature(envelope))).hexdigest()


def digests(envelope: Mapping[str, Any], *, accepts_naive: bool) -> tuple[str, ...]:
    """Return the digests that a signature of this envelope may name, the canonical one first."""
    content = without_signature(envelope)
    forms = [canonical(content)]
    if accepts_naive and (other := naive(content)) != forms[0]:
        forms.append(other)
    return tuple(hashlib.sha256(form).hexdigest() for form in forms)
