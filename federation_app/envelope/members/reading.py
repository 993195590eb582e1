"""The reader of envelopes (envelope §4, schema A.1): bytes in, an envelope or an error out.

The digest covers the value as parsed; defaults are never added to it. It is computed on first use,
so that an envelope of a stranger costs no more than its parsing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed, unauthenticated
from federation_app.envelope.signatures.canonical import digest, naive_digest

if TYPE_CHECKING:
    from collections.abc import Iterator


class Intent(StrEnum):
    """The intents of §4.1."""

    ASK = "ask"
    INFORM = "inform"
    PROPOSE = "propose"
    CONFIRM = "confirm"
    DENY = "deny"
    PROGRESS = "progress"
    CANCEL = "cancel"
    SUBSCRIBE = "subscribe"
    NOTIFY = "notify"
    ERROR = "error"


_HEX: Final = "[0-9a-fA-F]"
_ID: Final = (
    rf"^(?:urn:uuid:)?{_HEX}{{8}}-{_HEX}{{4}}-4{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}\Z"
)
_URI: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+\Z"
_MEDIA_TYPE: Final = r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:;[\x20-\x7e]*)?\Z"
STREAM_ID: Final = rf"^[A-Za-z0-9._~:-]{{1,{limits.STREAM_ID_CHARS}}}\Z"
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|\+00:00)", re.ASCII
)

Id = Annotated[str, msgspec.Meta(pattern=_ID, max_length=45)]
Uri = Annotated[str, msgspec.Meta(pattern=_URI, max_length=limits.URI_CHARS)]
StreamId = Annotated[str, msgspec.Meta(pattern=STREAM_ID)]


class ContextReference(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier envelope, with its digest."""

    id: Id
    hash: Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]


class EnvelopeBody(msgspec.Struct, frozen=True, kw_only=True):
    """The content, still encoded and compressed (see `body.decoded`)."""

    type: Annotated[str, msgspec.Meta(pattern=_MEDIA_TYPE, max_length=limits.MEDIA_TYPE_CHARS)]
    content: str
    encoding: Annotated[str, msgspec.Meta(max_length=32)] = "utf-8"
    compression: Annotated[str, msgspec.Meta(max_length=32)] = "none"


class _Members(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of schema A.1."""

    id: Id
    ts: Annotated[str, msgspec.Meta(max_length=40)]
    from_: Uri = msgspec.field(name="from")
    to: Annotated[list[Uri], msgspec.Meta(min_length=1, max_length=limits.RECIPIENTS)]
    intent: Intent
    body: EnvelopeBody
    sig: Annotated[str, msgspec.Meta(min_length=1)]
    reply_to: Id | msgspec.UnsetType = msgspec.UNSET
    context: Annotated[list[ContextReference], msgspec.Meta(max_length=limits.REFERENCES)] = []
    stream_id: StreamId | msgspec.UnsetType = msgspec.UNSET
    delta_window: Annotated[int, msgspec.Meta(ge=1, le=limits.WINDOW_BOUND)] = limits.DEFAULT_WINDOW
    cap_token: Annotated[str, msgspec.Meta(max_length=limits.TOKEN_BYTES)] = ""
    ext: dict[str, Any] = {}


class Envelope(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A well-formed envelope whose signature has not been verified.

    `id` and `reply_to` are UUIDs in lower case, without `urn:uuid:`. `value` is the envelope as
    parsed. `window` is at most limits.MAX_WINDOW.
    """

    id: str
    ts: datetime
    sender: str
    to: tuple[str, ...]
    intent: Intent
    body: EnvelopeBody
    sig: str
    reply_to: str
    context: tuple[ContextReference, ...]
    stream_id: str
    window: int
    cap_token: str
    ext: dict[str, Any]
    value: dict[str, Any]

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the canonical form; raises EnvelopeError malformed if there is none."""
        return digest(self.value)

    def digests(self, *, accepts_naive: bool = True) -> Iterator[str]:
        """Yield the digests that the sender may have signed, the canonical one first."""
        yield self.sha256
        if accepts_naive and (other := naive_digest(self.value)) != self.sha256:
            yield other


def read_envelope(raw: str | bytes, *, limit: int = limits.ENVELOPE_BYTES) -> Envelope:
    """Parse an envelope; raises EnvelopeError malformed or too_large."""
    return envelope_of(limits.load(raw, limit=limit))


def envelope_of(value: object) -> Envelope:
    """Convert a parsed value to an envelope; raises EnvelopeError malformed or too_large."""
    if not isinstance(value, dict):
        raise malformed("An envelope must be a JSON object.", detail="schema")
    try:
        members = msgspec.convert(value, _Members)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="schema") from None
    if len(msgspec.json.encode(members.ext)) > limits.EXTENSION_BYTES:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE,
            f"ext may have at most {limits.EXTENSION_BYTES} bytes.",
            detail="ext",
        )
    reply_to = "" if members.reply_to is msgspec.UNSET else members.reply_to
    return Envelope(
        id=plain_id(members.id),
        ts=read_time(members.ts),
        sender=members.from_,
        to=tuple(members.to),
        intent=members.intent,
        body=members.body,
        sig=members.sig,
        reply_to=plain_id(reply_to),
        context=tuple(members.context),
        stream_id="" if members.stream_id is msgspec.UNSET else members.stream_id,
        window=min(members.delta_window, limits.MAX_WINDOW),
        cap_token=members.cap_token,
        ext=members.ext,
        value=value,
    )


def claims_of(raw: bytes) -> tuple[str, dict[str, str]]:
    """Return the claimed sender of a refused record, and the members for a reply.

    The members are `reply_to`, from the record's id, and `stream_id`. Nothing is verified;
    malformed members are left out, and a malformed sender is ''.
    """
    try:
        value = limits.load(raw)
    except EnvelopeError:
        return "", {}
    if not isinstance(value, dict):
        return "", {}
    claims = {
        name: str(value[claim])
        for name, claim, pattern in (
            ("from", "from", _URI),
            ("reply_to", "id", _ID),
            ("stream_id", "stream_id", STREAM_ID),
        )
        if isinstance(value.get(claim), str)
        and len(value[claim]) <= limits.URI_CHARS
        and re.match(pattern, value[claim])
    }
    return claims.pop("from", ""), claims


def is_stream_id(text: str) -> bool:
    """Return whether a text can be the id of a stream."""
    return re.match(STREAM_ID, text) is not None


def plain_id(urn: str) -> str:
    """Return the stored form of an id: lower case, without `urn:uuid:`."""
    return urn.lower().removeprefix("urn:uuid:")


def read_time(text: str) -> datetime:
    """Parse a time in UTC; raises EnvelopeError malformed for other zones and invalid times."""
    match = _TIME.fullmatch(text)
    try:
        if match is not None:
            moment = datetime.strptime(match[1].upper(), "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007 UTC below
            micros = int((match[2] or "0")[:6].ljust(6, "0"))
            return moment.replace(microsecond=micros, tzinfo=UTC)
    except ValueError:
        pass
    raise malformed("ts must be a UTC time such as 2025-07-10T13:37:05Z.", detail="ts")


def written_time(moment: datetime) -> str:
    """Return a time in the format of envelopes, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_time(ts: datetime, now: datetime, *, seconds: int = limits.TIME_WINDOW_SECONDS) -> None:
    """Raise EnvelopeError unauthenticated unless a time is within `seconds` of now.

    Within that time, repeated ids are found in the rows of received envelopes.
    """
    if abs((now - ts).total_seconds()) > seconds:
        raise unauthenticated(
            f"ts is not within {seconds} seconds of the receiver's clock. Sign a new envelope.",
            detail="ts",
        )
