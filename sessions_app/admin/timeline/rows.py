"""Tool calls, delegated responses, payment requests and money as timeline items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from payments_app.money import Money
from sessions_app.admin.timeline.item import (
    Item,
    account_name,
    page_link,
    response_links,
    used_text,
)

if TYPE_CHECKING:
    from payments_app.reporting.movements import MovedMoney, ReservedMoney
    from sessions_app.models import PaymentRequest, Response, ToolCall


def items_of_delegated(response: Response) -> list[Item]:
    """Return the items of a delegated response: its start and its end."""
    name = response.agent.name
    shared: dict[str, Any] = {
        "track": "responses",
        "who": f"agent:{response.agent_id}",
        "links": response_links(response.pk),
        "span": response.pk,
    }
    begun = Item(
        key=f"response-{response.pk}",
        at=response.created_at,
        title=f"{name} was given work",
        tone="running" if response.finished_at is None else "",
        **shared,
    )
    if response.finished_at is None:
        return [begun]
    error = response.error or {}
    ended = Item(
        key=f"response-{response.pk}-end",
        at=response.finished_at,
        title=f"{name} finished: {error.get('code', response.status)}",
        facts=str(error.get("message", "")) or used_text(response),
        cause=response.error_cause or "",
        tone="failed" if error else "",
        **shared,
    )
    return [begun, ended]


def items_of_call(call: ToolCall) -> list[Item]:
    """Return the items of a tool call: its start and its end."""
    who = f"agent:{call.response.agent_id}"
    links = [
        page_link("Tool call", "sessions_app.toolcall", call.pk),
        *response_links(call.response_id),
    ]
    facts = f"{call.get_kind_display()}, {call.get_status_display()}"
    if call.attempts > 1:
        facts += f", {call.attempts} attempts"
    begun = Item(
        key=f"call-{call.pk}",
        track="tools",
        at=call.created_at,
        title=f"{call.name} was called",
        who=who,
        facts=facts,
        text=call.arguments,
        tone="running" if call.finished_at is None else "",
        links=links,
        span=f"call:{call.pk}",
    )
    items = [begun, *_steps_of_call(call, who)]
    if call.finished_at is None:
        return items
    failed = call.is_error or call.status in {"failed", "unknown"}
    seconds = (call.finished_at - call.created_at).total_seconds()
    ended = Item(
        key=f"call-{call.pk}-end",
        track="tools",
        at=call.finished_at,
        title=f"{call.name} finished: {call.get_status_display()}",
        who=who,
        facts=f"after {seconds:.1f} s",
        cause=call.cause,
        text=call.result or "",
        tone="failed" if failed else "",
        links=links[:1],
        span=f"call:{call.pk}",
    )
    return [*items, ended]


def _steps_of_call(call: ToolCall, who: str) -> list[Item]:
    """Return the items of a person's decision about a call, and of its start in a worker."""
    items = []
    shared: dict[str, Any] = {"track": "tools", "span": f"call:{call.pk}"}
    if call.decided_at is not None:
        by = call.decided_by.get_username() if call.decided_by else "the visitor"
        items.append(
            Item(
                key=f"call-{call.pk}-decided",
                at=call.decided_at,
                title=f"{by} decided on {call.name}",
                who=f"user:{call.decided_by_id}" if call.decided_by_id else "",
                **shared,
            )
        )
    if call.started_at is not None:
        waited = (call.started_at - (call.decided_at or call.created_at)).total_seconds()
        items.append(
            Item(
                key=f"call-{call.pk}-started",
                at=call.started_at,
                title=f"A worker started {call.name}",
                who=who,
                facts=f"after {waited:.1f} s in the queue",
                **shared,
            )
        )
    return items


def items_of_request(request: PaymentRequest) -> list[Item]:
    """Return the items of a payment request: the question and the decision."""
    amount = Money(request.amount, request.asset)
    payer = request.payer.get_username() if request.payer else "the visitor"
    who = f"user:{request.payer_id}" if request.payer_id else ""
    links = [
        page_link("Payment request", "sessions_app.paymentrequest", request.pk),
        *response_links(request.response_id),
    ]
    if request.hold_id:
        links.append(page_link("Hold", "payments_app.hold", request.hold_id))
    span = f"request:{request.pk}"
    question = Item(
        key=f"request-{request.pk}",
        track="money",
        at=request.created_at,
        title=f"{payer} was asked to pay {amount} {request.asset}",
        who=who,
        facts=request.reason.replace("_", " "),
        tone="running" if request.decided_at is None else "",
        links=links,
        span=span,
    )
    if request.decided_at is None:
        return [question]
    decided = Item(
        key=f"request-{request.pk}-end",
        track="money",
        at=request.decided_at,
        title=f"The request for {amount} {request.asset} is {request.status}",
        who=who,
        tone="failed" if request.status == "expired" else "",
        links=links[:1],
        span=span,
    )
    return [question, decided]


def items_of_hold(hold: ReservedMoney) -> list[Item]:
    """Return the items of a reservation: its start and, if the time is known, its end."""
    asset = hold.amount.asset
    shared: dict[str, Any] = {
        "track": "money",
        "span": f"hold:{hold.id}",
        "links": [
            page_link("Hold", "payments_app.hold", hold.id),
            page_link("Account", "payments_app.account", hold.account.id),
            *response_links(hold.response_id),
        ],
    }
    reserved = Item(
        key=f"hold-{hold.id}",
        at=hold.at,
        title=f"{hold.amount} {asset} put on hold in {account_name(hold.account.code)}",
        facts=f"{hold.state}, {hold.captured} captured",
        tone="running" if hold.state == "active" else "",
        **shared,
    )
    if hold.ended_at is None:
        return [reserved]
    ended = Item(
        key=f"hold-{hold.id}-end",
        at=hold.ended_at,
        title=f"The hold of {hold.amount} {asset} is {hold.state}",
        facts=f"{hold.captured} captured, after {(hold.ended_at - hold.at).total_seconds():.1f} s",
        **shared,
    )
    return [reserved, ended]


def item_of_transfer(moved: MovedMoney) -> Item:
    """Return the item of a money transfer."""
    links = [page_link("Transfer", "payments_app.transfer", moved.id)]
    if moved.hold_id:
        links.append(page_link("Hold", "payments_app.hold", moved.hold_id))
    if moved.reverses:
        links.append(page_link("Refunds", "payments_app.transfer", moved.reverses))
    sides = dict.fromkeys(account for account, _ in moved.entries)
    links += [
        page_link(account_name(account.code), "payments_app.account", account.id)
        for account in sides
    ]
    sums = ", ".join(f"{account_name(account.code)} {amount}" for account, amount in moved.entries)
    return Item(
        key=f"transfer-{moved.id}",
        track="money",
        at=moved.at,
        title=f"{moved.kind} of {moved.amount} {moved.amount.asset}",
        facts=sums,
        links=[*links, *response_links(moved.response_id)],
    )
