"""Verifies messages against the signatures of their agents.

Messages are those of exports, REST and `message.created`: objects with `id`, `content`,
`content_items`, `response_id`, `status` unless it is `completed`, `salt`, and `deleted_at` if their
text was deleted. `stored_output_hash` and `stored_usage_hash` are those of the stored
response, where the server adds them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from uamp.signatures.canonical import sha256_of, text_sha256
from uamp.signatures.claims import TYPE, AnswerClaims, agent_owner, output_of, request_of
from uamp.signatures.jws import BadSignature, UnknownKey, open_signature
from uamp.signatures.trust import SignatureState, distrust, is_retired

_UNCHANGED: Final = frozenset({SignatureState.VALID, SignatureState.ROTATED})
_DETAILS: Final = {
    SignatureState.VALID: "It is unchanged since the agent signed it.",
    SignatureState.ROTATED: "It is unchanged since the agent signed it, with a key retired since.",
    SignatureState.CHANGED: "It differs from what the agent signed.",
    SignatureState.ERASED: "Its text was deleted, so there is nothing left to verify.",
}


_STORED: Final = "The stored response differs from what the agent signed."
_STORED_USAGE: Final = "The stored usage or cost differs from what the agent signed."


class RequestState(StrEnum):
    """The state of the message that a signed answer answers."""

    SAME = "same"
    CHANGED = "changed"
    EDITED = "edited"
    ERASED = "erased"
    ABSENT = "absent"


class SignatureCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a check; `detail` is for people, `claims` are set once they are verified.

    VALID and ROTATED answers are unchanged since they were signed; the key of a ROTATED answer has
    been retired since. The text of an ERASED answer was deleted; servers withhold its signature.
    `request` is the state of the message that it answers.
    """

    state: SignatureState
    detail: str
    request: RequestState = RequestState.ABSENT
    claims: AnswerClaims | None = None
    kid: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether the check found nothing against the answer."""
        bad = (SignatureState.CHANGED, SignatureState.UNKNOWN_KEY)
        return self.state not in bad and self.request is not RequestState.CHANGED


def check_answer(
    message: Mapping[str, Any],
    keys: Iterable[Mapping[str, Any]],
    *,
    chat_id: str | None = None,
    question: Mapping[str, Any] | None = None,
) -> SignatureCheck:
    """Check a message against its `signature`.

    `keys` are the JSON Web Keys of the server. `chat_id` is compared if given. `question` is the
    message with the id that the claims name, if the caller has it.
    """
    signature = message.get("signature")
    if signature is None and message.get("response_id") and _is_erased(message):
        state = SignatureState.ERASED
        return SignatureCheck(state=state, detail=_DETAILS[state])
    if signature is None:
        return SignatureCheck(state=SignatureState.UNSIGNED, detail="It has no signature.")
    try:
        claims, key = open_signature(signature, keys, typ=TYPE, claims=AnswerClaims)
    except UnknownKey as error:
        return SignatureCheck(state=SignatureState.UNKNOWN_KEY, detail=str(error))
    except BadSignature as error:
        return SignatureCheck(state=SignatureState.CHANGED, detail=str(error))
    distrusted = distrust(key, owner=agent_owner(claims.sub), at=claims.iat)
    if distrusted is not None:
        return SignatureCheck(state=SignatureState.UNKNOWN_KEY, detail=distrusted)
    state = _state(claims, message, chat_id)
    if state is SignatureState.VALID and is_retired(key):
        state = SignatureState.ROTATED
    detail = _DETAILS[state]
    if state in _UNCHANGED and (stored := _stored_change(claims, message)):
        state, detail = SignatureState.CHANGED, stored
    return SignatureCheck(
        state=state,
        detail=detail,
        request=_request(claims, question),
        claims=claims,
        kid=str(key["kid"]),
    )


def with_question(check: SignatureCheck, question: Mapping[str, Any]) -> SignatureCheck:
    """Return the check of an answer with the state of the message that it answers."""
    if check.claims is None:
        return check
    return msgspec.structs.replace(check, request=_request(check.claims, question))


def _state(claims: AnswerClaims, message: Mapping[str, Any], chat_id: str | None) -> SignatureState:
    """Compare a message with the claims of a signature that is good."""
    if _is_of_another(claims, message, chat_id):
        return SignatureState.CHANGED
    if _is_erased(message):
        return SignatureState.ERASED
    if not _is_as_signed(claims, message):
        return SignatureState.CHANGED
    return SignatureState.VALID


def _is_of_another(claims: AnswerClaims, message: Mapping[str, Any], chat_id: str | None) -> bool:
    return (
        message.get("response_id") != claims.jti
        or message.get("id") != claims.message_id
        or chat_id not in {None, claims.chat_id}
        # Presented as a message of a person, or of another agent.
        or message.get("role", "assistant") != "assistant"
        or message.get("name", claims.agent) != claims.agent
        # An incomplete answer presented as complete, or the other way round.
        or (message.get("status") or "completed") != claims.status
    )


def _is_as_signed(claims: AnswerClaims, message: Mapping[str, Any]) -> bool:
    content, items = message.get("content"), message.get("content_items") or []
    if not isinstance(content, str) or not isinstance(items, list):
        return False
    try:
        return (
            text_sha256(content) == claims.response_hash
            and sha256_of(output_of(content, items)) == claims.output_hash
        )
    except ValueError:
        return False


def _stored_change(claims: AnswerClaims, message: Mapping[str, Any]) -> str:
    """Describe how the response that other protocols read differs from the signed one, if known."""
    if message.get("stored_output_hash") not in (None, claims.output_hash):
        return _STORED
    # Signatures of earlier servers do not cover the usage.
    usage = message.get("stored_usage_hash")
    return _STORED_USAGE if claims.usage_hash and usage not in (None, claims.usage_hash) else ""


def _is_erased(message: Mapping[str, Any]) -> bool:
    """Return whether a message was deleted; a message that still has text was not."""
    has_text = message.get("content") or message.get("content_items")
    return bool(message.get("deleted_at")) and not has_text


def _request(claims: AnswerClaims, question: Mapping[str, Any] | None) -> RequestState:
    if question is None or claims.request_id is None or question.get("id") != claims.request_id:
        return RequestState.ABSENT
    if _is_erased(question):
        return RequestState.ERASED
    if _is_answered(claims, question):
        return RequestState.SAME
    return RequestState.EDITED if question.get("edited_at") else RequestState.CHANGED


def _is_answered(claims: AnswerClaims, question: Mapping[str, Any]) -> bool:
    """Return whether a question is the one that an answer was signed for.

    Servers of the release before salts sign without the salt, also while they are being updated.
    """
    try:
        forms = (request_of(question), request_of({**question, "salt": None}))
        return claims.request_hash in map(sha256_of, forms)
    except (TypeError, ValueError):
        return False
