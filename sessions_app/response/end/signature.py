"""The signature of an answer, created before its end is written (UAMP §6.7).

Completed answers are signed, and those that were paid although they were stopped or failed.
docs/signatures.md describes the claims. Hashing and signing run on separate threads: an RSA
signature takes about 0.2 ms of CPU time, and hashing a long answer about as much.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import Error as DatabaseError

from agents_app.conversation.history import RememberedMessage
from sessions_app import database
from signing_app.owner_keys import known_key, signing_key
from telemetry import metrics
from uamp import ResponseState, signatures
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext
    from sessions_app.store.records import Finish
    from signing_app.keys import SigningKey

logger = logging.getLogger(__name__)

UNSIGNED: Final = "The server could not sign this answer."
"""The `signature_error` of an answer that could not be signed."""

THREADS: Final = 2
"""How many answers a process signs at a time."""


def is_signed(finish: Finish) -> bool:
    """Return whether the end of a response is signed."""
    is_paid = finish.charge is not None and finish.charge.amount.amount > 0
    return finish.status == ResponseState.COMPLETED or is_paid


async def signed(finish: Finish, context: RunContext) -> Finish:
    """Return the end of a response with the signature in its event.

    An agent's keys are occasionally read from the database, whose errors are passed on. If anything
    else fails, the event says that the answer is unsigned, and the failure is counted.
    """
    owner = signatures.agent_owner(context.spec.id)
    try:
        key = known_key(owner)
        if key is None:
            key = await database.run(signing_key, owner)
        loop = asyncio.get_running_loop()
        signature = await loop.run_in_executor(_threads(), _signature, key, finish, context)
    except (DatabaseError, TimeoutError):
        raise
    except Exception:
        logger.exception("the answer %s could not be signed", finish.response_id)
        metrics.UNSIGNED.inc()
        return _with(finish, signature_error=UNSIGNED)
    return _with(finish, signature=signature)


def _with(finish: Finish, **members: str) -> Finish:
    """Return the end of a response with these members in its event."""
    event = msgspec.structs.replace(finish.event, payload={**finish.event.payload, **members})
    return msgspec.structs.replace(finish, event=event)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="signatures")


def _signature(key: SigningKey, finish: Finish, context: RunContext) -> str:
    return key.sign(msgspec.to_builtins(_claims(finish, context)), typ=signatures.TYPE)


def _claims(finish: Finish, context: RunContext) -> signatures.AnswerClaims:
    charge = finish.charge
    price = None
    if charge is not None:
        price = signatures.Price(
            amount=str(charge.amount),
            currency=charge.amount.asset,
            transfer_id=charge.transfer_id if charge.amount else None,
        )
    return signatures.AnswerClaims(
        iss=settings.UAMP_ISSUER,
        sub=context.spec.id,
        agent=context.spec.name,
        chat_id=finish.chat_id,
        jti=finish.response_id,
        iat=int(finish.at.timestamp()),
        response_hash=signatures.text_sha256(finish.text),
        output_hash=signatures.sha256_of(finish.output),
        request_hash=_request_hash(context),
        message_id=None if finish.message is None else finish.message.id,
        request_id=context.question_id,
        price=price,
        status=finish.status,
        digital_source_type=AI_MADE,
        usage_hash=signatures.sha256_of(finish.usage),
        models=_models(finish, context),
    )


def _models(finish: Finish, context: RunContext) -> tuple[str, ...]:
    """Return the models of the inferences or, without any, the model of the agent, if it has one.

    Agents from elsewhere do not report their inferences.
    """
    names = [inference["model"] for inference in finish.inferences or ()] or [context.spec.model]
    return tuple(filter(None, dict.fromkeys(names)))


def _request_hash(context: RunContext) -> str:
    """Return the hash of the message that a response answers.

    Without one, it is that of the last message if the client sent it along, or of None. Stored
    messages are never hashed without their ids and salts. Raises ValueError if the message had no
    hash.
    """
    if context.question_id is None:
        last = context.request.history[-1] if context.request.history else None
        sent: dict[str, Any] | None = None
        if not isinstance(last, RememberedMessage):
            sent = msgspec.to_builtins(last)
        return signatures.sha256_of(signatures.request_of(sent))
    if not context.question_hash:
        raise ValueError("The question has no canonical form.")
    return context.question_hash
