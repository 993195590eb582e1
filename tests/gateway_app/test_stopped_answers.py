"""Answers that end because their key or agent may act no more, in the words of each protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from agents_app.models import Agent
from agents_app.providers import scripts
from sessions_app.models import ApiKey, Response
from tests.client import wait_until
from tests.gateway_app.test_disabled_agents import TRANSPORTS
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.access.test_standing import TEXT, half
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Person

# Those whose one request has the whole answer.
REQUESTS = sorted(
    TRANSPORTS.keys()
    - {"UAMP WebSocket", "UAMP events", "REST", "ACP", "Realtime GA"}
    - {"Realtime beta"}
)


def revoke_the_key() -> None:
    ApiKey.objects.update(revoked_at=timezone.now())


def switch_off() -> None:
    Agent.objects.filter(name="helper").update(is_enabled=False)


LOSSES = [
    (revoke_the_key, "The key that asked for this answer was revoked or has expired."),
    (switch_off, "helper is switched off."),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("lose", "reason"), LOSSES)
@pytest.mark.parametrize("name", REQUESTS)
def test_the_reason_ends_the_answer_of_a_request(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    lose: Callable[[], None],
    reason: str,
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "half", half)
    quick_agent("helper", "half")
    chat = shared_chat(alice, agents=("helper",))
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    with thread_pool(1) as pool:
        request = pool.submit(TRANSPORTS[name], demo, web, headers)
        wait_until(lambda: Response.objects.filter(text=TEXT).exists())
        lose()
        answer = request.result(60)
    assert reason in answer, answer
    assert Response.objects.get().status == "failed"
