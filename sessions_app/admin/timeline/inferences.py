"""The requests of a response to its model, as timeline items."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agents_app.inferences import read_inferences
from sessions_app.admin.timeline.item import Item, counted, response_links

if TYPE_CHECKING:
    from agents_app.inferences import Attempt, Inference
    from sessions_app.models import Response


def items_of_inferences(response: Response) -> list[Item]:
    """Return the items of a response's model calls: when each was sent, and its end."""
    return [
        item
        for inference in read_inferences(response.inferences)
        for item in _items(response, inference)
    ]


def _items(response: Response, inference: Inference) -> list[Item]:
    name = f"Model call {inference.number}"
    at = datetime.fromtimestamp(inference.at / 1000, tz=UTC)
    is_lost = inference.is_running and response.finished_at is not None
    key = f"inference-{response.pk}-{inference.number}"
    shared: dict[str, Any] = {
        "track": "models",
        "who": f"agent:{response.agent_id}",
        "links": response_links(response.pk),
        "span": key,
    }
    facts = [f"{inference.provider} {inference.model}".strip()]
    if inference.is_running and inference.first_ms is not None:
        facts.append(f"first output after {seconds(inference.first_ms)}")
    if is_lost:
        facts.append("its end was not recorded")
    sent = Item(
        key=key,
        at=at,
        title=f"{name} was sent",
        facts=", ".join(facts),
        tone="running" if inference.is_running and not is_lost else "",
        **shared,
    )
    if inference.ms is None:
        return [sent]
    ended = Item(
        key=f"{key}-end",
        at=at + timedelta(milliseconds=inference.ms),
        title=f"{name} {inference.end or 'was answered'}".replace(" stopped", " was stopped"),
        facts=", ".join(_facts(inference, inference.ms)),
        cause="\n".join(
            f"Attempt {number} failed: {_words(attempt)}"
            for number, attempt in enumerate(inference.attempts, 1)
        ),
        tone="failed" if inference.end == "failed" else "",
        **shared,
    )
    return [sent, ended]


def _facts(inference: Inference, ms: int) -> list[str]:
    facts = [f"after {seconds(ms)}"]
    if inference.first_ms is not None:
        facts.append(f"first output after {seconds(inference.first_ms)}")
    if not inference.end:
        read, written = inference.input_tokens, inference.output_tokens
        facts.append(f"{counted(read, 'token')} in, {written:,} out")
    if inference.request_id:
        facts.append(f"request {inference.request_id}")
    return facts


def _words(attempt: Attempt) -> str:
    facts = [] if attempt.status is None else [f"HTTP {attempt.status}"]
    if attempt.request_id:
        facts.append(f"request {attempt.request_id}")
    where = f" ({', '.join(facts)})" if facts else ""
    return f"{attempt.code}{where}: {attempt.words}".removesuffix(": ")


def seconds(ms: int) -> str:
    """Return a duration in seconds, as people read it."""
    return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"  # noqa: PLR2004 ten seconds
