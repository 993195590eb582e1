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
    found = server_figures()
    user: Any = request.user
    return {
        "at": found.at,
        "cards": _cards(found, user),
        "needs": _needs(found, user),
        "plots": _plots(found, request),
        "health": found.health if user.has_perm("payments_app.view_ledgerstate") else None,
        "liveness": _liveness(found, user),
        "missing_hours": found.missing_hours,
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


def _shown(count: int) -> str:
    return f"{count:,}" if count < MAX_COUNT else f"{MAX_COUNT:,} or more"


def _cards(found: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return running answers, sockets and sessions as {label, value, url}."""
    cards = []
    if user.has_perm("sessions_app.view_response"):
        cards = [
            {
                "label": f"Answers {label}",
                "value": _shown(found.running.get(status, 0)),
                "url": _list("sessions_app_response", status__exact=status),
            }
            for status, label in _RUNNING.items()
        ]
    for model, label, count in (
        ("toolcall", "Unfinished tool calls", found.open_calls),
        ("webhookdelivery", "Undelivered webhooks", found.open_deliveries),
    ):
        if user.has_perm(f"sessions_app.view_{model}"):
            url = _list(f"sessions_app_{model}", open="yes")
            cards.append({"label": label, "value": _shown(count), "url": url})
    if user.has_perm("chat_app.view_presence"):
        url = _list("chat_app_presence")
        label = "Open sockets of people and their programs"
        cards.append({"label": label, "value": _shown(found.sockets), "url": url})
    if user.has_perm("agents_app.view_agent"):
        url = _list("agents_app_agentconnection")
        cards.append({"label": "Connected daemons", "value": _shown(found.daemons), "url": url})
    if user.has_perm("sessions_app.view_session"):
        url = _list("sessions_app_session", status__exact="active")
        cards.append({"label": "Connected sessions", "value": _shown(found.sessions), "url": url})
    return cards


def _liveness(found: ServerFigures, user: User) -> dict[str, Any] | None:
    """Return the processes and queues as {servers, url, queues}, with links to their work."""
    if not user.has_perm("sessions_app.view_toolcall"):
        return None
    queues = []
    for queue in found.liveness.queues:
        app_model, query = _WAITING_IN.get(queue.name, ("", {}))
        app, _, model = app_model.rpartition("_")
        is_linked = bool(model) and user.has_perm(f"{app}.view_{model}")
        url = _list(app_model, **query) if is_linked else ""
        queues.append({"figures": queue, "url": url})
    url = _list("sessions_app_processbeat")
    return {
        "servers": found.liveness.servers,
        "seen_at": found.liveness.seen_at,
        "url": url,
        "queues": queues,
    }


def _needs_of_processes(found: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return lost processes, and queues in which work waits without a worker."""
    alive = _liveness(found, user)
    if alive is None:
        return []
    needs = []
    if found.liveness.lost:
        url = _list("sessions_app_processbeat", lost="yes")
        label = "processes that stopped without notice"
        needs.append({"label": label, "value": _shown(found.liveness.lost), "url": url})
    for queue in alive["queues"]:
        figures = queue["figures"]
        if figures.waiting and not figures.workers:
            label = f"waiting in the queue “{figures.name}”, which has no worker"
            url = queue["url"] or alive["url"]
            needs.append({"label": label, "value": _shown(figures.waiting), "url": url})
    return needs


def _needs(found: ServerFigures, user: User) -> list[dict[str, str]]:
    """Return whatever needs attention, as {label, value, url}."""
    rows = (
        ("sessions_app", "toolcall", found.stuck_calls, "overdue tool calls",
         {"stuck": "yes"}),
        ("sessions_app", "toolcall", found.unclaimed_calls, "tool calls that no worker takes",
         {"unclaimed": "yes"}),
        ("sessions_app", "response", found.stuck_answers, "answers without a process",
         {"stuck": "yes"}),
        ("sessions_app", "paymentrequest", found.unpaid, "pending payments",
         {"status__exact": "waiting"}),
        ("sessions_app", "queuedturn", found.refused_turns, "refused queued messages",
         {"status__exact": "failed"}),
        ("sessions_app", "webhook", found.disabled_webhooks,
         "webhooks disabled in the last 14 days", {"disabled": "yes"}),
        ("payments_app", "topuprequest", found.top_ups, "pending top-ups", {"state": "open"}),
    )  # fmt: skip
    needs = [
        {"label": label, "value": _shown(count), "url": _list(f"{app}_{model}", **query)}
        for app, model, count, label, query in rows
        if count and user.has_perm(f"{app}.view_{model}")
    ]
    needs += _needs_of_processes(found, user)
    if user.has_perm("sessions_app.view_response"):
        needs += [
            {
                "label": f"of {agent.answers:,} answers by {agent.name} failed in 24 hours",
                "value": f"{agent.failed:,}",
                "url": _list(
                    "sessions_app_response",
                    agent__id__exact=agent.id,
                    status__exact="failed",
                    **_since(found.errors),
                ),
            }
            for agent in found.failing
        ]
    if found.adjustments and user.has_perm("payments_app.view_account"):
        url = _list("payments_app_adjustmentrequest", state__exact="open")
        label = "adjustments that need a second operator"
        needs.append({"label": label, "value": _shown(found.adjustments), "url": url})
    if user.has_perm("payments_app.view_ledgerstate"):
        url = _list("payments_app_ledgerstate")
        if found.health.frozen_at:
            needs.append({"label": "Payouts are frozen", "value": "!", "url": url})
        if found.health.mismatches:
            count = str(len(found.health.mismatches))
            needs.append({"label": "Failed ledger checks", "value": count, "url": url})
    return needs


def _plots(found: ServerFigures, request: HttpRequest) -> list[dict[str, Any]]:
    plots = []
    if request.user.has_perm("sessions_app.view_response"):
        failed = _list("sessions_app_response", status__exact="failed", **_since(found.errors))
        ended = _list("sessions_app_response", **_since(found.tokens_by_agent))
        plots = [
            plot_of_series("Failed answers per hour, by cause", found.errors, "H:i", failed),
            plot_of_series("Tokens per day, by agent", found.tokens_by_agent, "Y-m-d", ended),
            plot_of_series("Tokens per day, by protocol", found.tokens_by_protocol, "Y-m-d", ended),
        ]
    if sees_money(request):
        paid = reverse("admin:sessions_app_paymentrequest_dashboard")
        by_agent, by_protocol = found.charged_by_agent, found.charged_by_protocol
        plots += [
            plot_of_series("Charged per day, by agent", by_agent, "Y-m-d", paid, money_of),
            plot_of_series("Charged per day, by protocol", by_protocol, "Y-m-d", paid, money_of),
        ]
    return plots
