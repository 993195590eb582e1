"""Delegation to another agent (UAMP §8.5.4): an ordinary turn in a private chat.

The delegating call waits as a row; the transaction that ends the other agent's response ends it
too. No wait exists only in memory, so either response can be continued if its process dies. The
other agent's text is published as progress of the call (UAMP §6.13).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.db import transaction

import uamp
from agents_app import selectors as agents
from agents_app import visitors
from agents_app.rest.rights import restricted_rights
from agents_app.tools.registry import ToolError
from chat_app.contents import references
from chat_app.members import chats
from sessions_app import database
from sessions_app.access.principal import Principal
from sessions_app.models import Response, Session, SessionTransport
from sessions_app.response.forwarding import Forwarder
from sessions_app.selectors import session_on_behalf
from sessions_app.tools import delegated_calls
from sessions_app.tools.contents import asker_of, readable
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import events as ev
from uamp.content_labels import pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.conversation.delegation_orders import DelegationOrder
    from agents_app.selectors import AgentSpec
    from sessions_app.records import OpenSession
    from sessions_app.response.context import RunContext
    from sessions_app.response.port import RunPort
    from sessions_app.response.run import Run


async def delegate(
    port: RunPort, pk: int, call: uamp.ToolCallData, order: DelegationOrder
) -> Sequence[Run]:
    """Start another agent's response, unless the call has already started one.

    Return its runs in this process; none if the call was delegated before.

    Raises ToolError with a message for the model, and RemoteProtocolError if there is no capacity.
    """
    context = port.context
    session, attachments, unprompted = await database.run(_open, context, pk, order)
    request = TurnRequest(
        session=session,
        event_id=f"call-{pk}",
        sha256=hashlib.sha256(msgspec.json.encode(order)).hexdigest(),
        inputs=[ev.InputText(event_id=f"call-{pk}-task", text=pure(order.task))],
        create=ev.ResponseCreate(event_id=f"call-{pk}", session_id=session.id),
        attachments=attachments,
        counted_as=context.counted_as,
        unprompted=unprompted,
    )

    def publish(event: ev.Event) -> None:
        if not port.has_ended:
            port.publish(event)

    call_above = delegated_calls.CallAbove(context.chat_id, context.response_id, call.id)
    listener = Forwarder(call_above, session.agent_name or order.agent, publish)
    return (await start_response(request, listener)).runs


@transaction.atomic
def _open(
    context: RunContext, pk: int, order: DelegationOrder
) -> tuple[OpenSession, tuple[uamp.ContentItem, ...], bool]:
    """Find or create the other agent's session.

    Return it, the attached contents, and whether the answer that delegates is unprompted.
    """
    asking = Response.objects.filter(pk=context.response_id).select_related("session__user").first()
    asker = None if asking is None else asking.session
    if asking is None or asker is None:
        raise ToolError("The session that asked has ended, so no other agent can be asked.")
    principal = Principal(
        key=asker.principal,
        user_id=asker.user_id,
        username=asker.user.get_username() if asker.user else "",
        credential=context.credential,
        actors=context.actors,
        # Which agents work is the decision of their owner; which files they see is not.
        rights=restricted_rights(None, asking.request.get("chats")),
        servers=int(asking.request.get("servers", 0)),
    )
    row = Session.objects.filter(parent_call_id=pk).first()
    if row is None:
        target = _target(context.spec, order, asker)
        _check_chain(context.response_id, context.spec, target)
        items = _attached(order, context.chat_id, asking)
        row = _new_session(asker, target, pk)
    else:
        # A process died after creating the session; the permission was checked then.
        items = _attached(order, context.chat_id, asking)
    session = session_on_behalf(asking, row, principal)
    return session, items, bool(asking.request.get("unprompted"))


def _attached(
    order: DelegationOrder, chat_id: str, asking: Response
) -> tuple[uamp.ContentItem, ...]:
    owner = asker_of(asking)
    return tuple(
        references.item_of(readable(content_id, chat_id=chat_id, asker=owner))
        for content_id in order.attachments
    )


def _new_session(asker: Session, target: AgentSpec, pk: int) -> Session:
    chat = chats.create_chat(
        title="",
        created_by_id=asker.user_id,
        user_ids=[] if asker.user_id is None else [asker.user_id],
        agents=[(target.id, "always")],
        kind="session",
    )
    return Session.objects.create(
        user_id=asker.user_id,
        principal=asker.principal,
        agent_id=target.id,
        chat=chat,
        transport=SessionTransport.DELEGATE,
        uamp_version=uamp.VERSION,
        config=msgspec.to_builtins(uamp.SessionConfig()),
        parent_call_id=pk,
        payment_token_id=asker.payment_token_id,
        ephemeral=asker.ephemeral,
    )


def _target(spec: AgentSpec, order: DelegationOrder, asker: Session) -> AgentSpec:
    """Return the agent to delegate to: declared, and usable by the owner of the agent of `spec`.

    An owner who declares a private agent lets everyone who may ask `spec` have it work. The agent
    of operators, without an owner, reaches what its asker may use. Visitors reach only models that
    the operator lets them use.
    """
    names = [name for name, _ in spec.delegates]
    if order.agent.casefold() not in {name.casefold() for name in names}:
        raise ToolError(
            f"There is no agent {order.agent[:80]!r} to delegate to. Available: {', '.join(names)}."
        )
    delegating = agents.standing_of([spec.id]).get(spec.id)
    owner_id = None if delegating is None else delegating.owner_id
    target = agents.get_agent(order.agent, viewer=asker.user_id if owner_id is None else owner_id)
    if target is None or (asker.user_id is None and not visitors.may_ask(target.id)):
        whom = "the person who asks" if owner_id is None else f"the owner of {spec.name}"
        raise ToolError(f"{order.agent} is not available to {whom}.")
    return target


def _check_chain(response_id: str, spec: AgentSpec, target: AgentSpec) -> None:
    """Raise ToolError if the target waits for this answer, or a limit of delegation is reached."""
    above = delegated_calls.calls_above(response_id)
    waiting = Response.objects.filter(pk__in=[call.response_id for call in above])
    chain = {spec.id, *waiting.values_list("agent_id", flat=True)}
    if target.id in chain:
        raise ToolError(
            f"{target.name} is already waiting for this answer, so it cannot be asked. "
            "Do the task yourself."
        )
    if len(above) + 1 > settings.UAMP_DELEGATE_DEPTH:
        raise ToolError(
            f"Work can be delegated at most {settings.UAMP_DELEGATE_DEPTH} times. "
            "Do the task yourself."
        )
    original = above[-1].response_id if above else response_id
    # Calls that work for the same answer are counted one after another.
    Response.objects.select_for_update(no_key=True).filter(pk=original).first()
    if delegated_calls.count_work(original) >= settings.UAMP_DELEGATED_ANSWERS:
        raise ToolError(
            f"At most {settings.UAMP_DELEGATED_ANSWERS} answers of other agents may work for one "
            "answer. Do the task yourself."
        )
