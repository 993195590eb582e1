"""The operators' home page: running answers, failures and rows that need attention.

People see the parts whose lists they may open. The numbers and plots are updated once a minute
(`reporting.figures`).
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from sessions_app.admin.money import sees_money
from sessions_app.admin.plots import plot_of_series
from sessions_app.reporting.figures import MAX_COUNT, money_of, server_figures

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

    from sessions_app.reporting.figures import Series, ServerFigures

_RUNNING: Final = {
    "queued": "queued",
    "in_progress": "running",
    "waiting": "waiting for a tool, a person or a payment",
}
_WAITING_IN: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "tools": ("sessions_app_toolcall", {"status__exact": "queued", "kind__exact": "long"}),
    "webhooks": ("sessions_app_webhookdelivery", {"open": "yes"}),
}
"""The lists of the work in a queue."""


def home_context(request: HttpRequest) -> dict[str, Any]:
    """Return the home page's template context: `cards`, `needs`, `plots`, `health`, `at`."""
    figures = server_figures()
    user: Any = request.user
    return {
        "at": figures.at,
        "cards": _cards(figures, user),
        "needs": _needs(figures, user),
        "plots": _plots(figures, request),
        "health": figures.health if user.has_perm("payments_app.view_ledgerstate") else None,
        "liveness": _liveness(figures, user),
        "missing_hours": figures.missing_hours,
    }


def _list(model: str, **query: str) -> str:
    url = reverse(f"admin:{model}_changelist")
    return f"{url}?{urlencode(query)}" if query else url


def _since(series: Series) -> dict[str, str]:
    """Return the date filter of a list for the period of a series."""
    first = series.places[0].astimezone(UTC)
    return {
        "created_at_from": f"{first:%Y-%m-%d}",
        **({"created_at_from_time": f"{first:%H:%M}"} if first.hour else {}),
    }


def _count_text(count: int) -> str:
    return f"{count:,}" if count < MAX_COUNT else f"{MAX_COUNT:,} or more"


def _cards(figures: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return running answers, sockets and sessions as {label, value, url}."""
    cards = []
    if user.has_perm("sessions_app.view_response"):
        cards = [
            {
                "label": f"Answers {label}",
                "value": _count_text(figures.running.get(status, 0)),
                "url": _list("sessions_app_response", status__exact=status),
            }
            for status, label in _RUNNING.items()
        ]
    for model, label, count in (
        ("toolcall", "Unfinished tool calls", figures.open_calls),
        ("webhookdelivery", "Undelivered webhooks", figures.open_deliveries),
    ):
        if user.has_perm(f"sessions_app.view_{model}"):
            url = _list(f"sessions_app_{model}", open="yes")
            cards.append({"label": label, "value": _count_text(count), "url": url})
    if user.has_perm("chat_app.view_presence"):
        url = _list("chat_app_presence")
        label = "Open sockets of people and their programs"
        cards.append({"label": label, "value": _count_text(figures.sockets), "url": url})
    if user.has_perm("agents_app.view_agent"):
        url = _list("agents_app_agentconnection")
        cards.append(
            {"label": "Connected daemons", "value": _count_text(figures.daemons), "url": url}
        )
    if user.has_perm("sessions_app.view_session"):
        url = _list("sessions_app_session", status__exact="active")
        cards.append(
            {"label": "Connected sessions", "value": _count_text(figures.sessions), "url": url}
        )
    return cards


def _liveness(figures: ServerFigures, user: User) -> dict[str, Any] | None:
    """Return the processes and queues as {servers, url, queues}, with links to their work."""
    if not user.has_perm("sessions_app.view_toolcall"):
        return None
    queues = []
    for queue in figures.liveness.queues:
        app_model, query = _WAITING_IN.get(queue.name, ("", {}))
        app, _, model = app_model.rpartition("_")
        is_linked = bool(model) and user.has_perm(f"{app}.view_{model}")
        url = _list(app_model, **query) if is_linked else ""
        queues.append({"figures": queue, "url": url})
    url = _list("sessions_app_processbeat")
    return {
        "servers": figures.liveness.servers,
        "seen_at": figures.liveness.seen_at,
        "url": url,
        "queues": queues,
    }


def _needs_of_processes(figures: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return lost processes, and queues in which work waits without a worker."""
    alive = _liveness(figures, user)
    if alive is None:
        return []
    needs = []
    if figures.liveness.lost:
        url = _list("sessions_app_processbeat", lost="yes")
        label = "processes that stopped without notice"
        needs.append({"label": label, "value": _count_text(figures.liveness.lost), "url": url})
    for queue in alive["queues"]:
        queue_figures = queue["figures"]
        if queue_figures.waiting and not queue_figures.workers:
            label = f"waiting in the queue “{queue_figures.name}”, which has no worker"
            url = queue["url"] or alive["url"]
            needs.append({"label": label, "value": _count_text(queue_figures.waiting), "url": url})
    return needs


def _needs(figures: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return whatever needs attention, as {label, value, url}."""
    rows = (
        ("sessions_app", "toolcall", figures.stuck_calls, "overdue tool calls",
         {"stuck": "yes"}),
        ("sessions_app", "toolcall", figures.unclaimed_calls, "tool calls that no worker takes",
         {"unclaimed": "yes"}),
        ("sessions_app", "response", figures.stuck_answers, "answers without a process",
         {"stuck": "yes"}),
        ("sessions_app", "paymentrequest", figures.unpaid, "pending payments",
         {"status__exact": "waiting"}),
        ("sessions_app", "queuedturn", figures.refused_turns, "refused queued messages",
         {"status__exact": "failed"}),
        ("sessions_app", "webhook", figures.disabled_webhooks,
         "webhooks disabled in the last 14 days", {"disabled": "yes"}),
        ("payments_app", "topuprequest", figures.top_ups, "pending top-ups", {"state": "open"}),
    )  # fmt: skip
    needs = [
        {"label": label, "value": _count_text(count), "url": _list(f"{app}_{model}", **query)}
        for app, model, count, label, query in rows
        if count and user.has_perm(f"{app}.view_{model}")
    ]
    needs += _needs_of_processes(figures, user)
    if user.has_perm("sessions_app.view_response"):
        needs += [
            {
                "label": f"of {agent.answers:,} answers by {agent.name} failed in 24 hours",
                "value": f"{agent.failed:,}",
                "url": _list(
                    "sessions_app_response",
                    agent=agent.id,
                    status__exact="failed",
                    **_since(figures.errors),
                ),
            }
            for agent in figures.failing
        ]
    if figures.adjustments and user.has_perm("payments_app.view_account"):
        url = _list("payments_app_adjustmentrequest", state__exact="open")
        label = "adjustments that need a second operator"
        needs.append({"label": label, "value": _count_text(figures.adjustments), "url": url})
    if user.has_perm("payments_app.view_ledgerstate"):
        url = _list("payments_app_ledgerstate")
        if figures.health.frozen_at:
            needs.append({"label": "Payouts are frozen", "value": "!", "url": url})
        if figures.health.mismatches:
            count = str(len(figures.health.mismatches))
            needs.append({"label": "Failed ledger checks", "value": count, "url": url})
    return needs


def _plots(figures: ServerFigures, request: HttpRequest) -> list[dict[str, Any]]:
    plots = []
    if request.user.has_perm("sessions_app.view_response"):
        failed = _list("sessions_app_response", status__exact="failed", **_since(figures.errors))
        ended = _list("sessions_app_response", **_since(figures.tokens_by_agent))
        plots = [
            plot_of_series("Failed answers per hour, by cause", figures.errors, "H:i", failed),
            plot_of_series("Tokens per day, by agent", figures.tokens_by_agent, "Y-m-d", ended),
            plot_of_series(
                "Tokens per day, by protocol", figures.tokens_by_protocol, "Y-m-d", ended
            ),
        ]
    if sees_money(request):
        paid = reverse("admin:sessions_app_paymentrequest_dashboard")
        by_agent, by_protocol = figures.charged_by_agent, figures.charged_by_protocol
        plots += [
            plot_of_series("Charged per day, by agent", by_agent, "Y-m-d", paid, money_of),
            plot_of_series("Charged per day, by protocol", by_protocol, "Y-m-d", paid, money_of),
        ]
    return plots
