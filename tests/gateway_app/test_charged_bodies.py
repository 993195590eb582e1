"""A failed answer without streaming charges the part that it delivers in the reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from agents_app.providers import scripts
from payments_app.models import Transfer
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import wait_until
from tests.sessions_app.billing.paid_agents import clean, priced, rich, usd
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.live_server import Person
    from upp import LLMRequest

SAID: Final = "Hello there, how are you?"
BODIES: Final[dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": SAID}]},
    "responses": {"input": SAID},
    "v1/messages": {
        "model": "m",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": SAID}],
    },
}


def _token(person: Person, amount: str) -> dict[str, str]:
    user_id = rich(person).user.pk
    issued_token = issuance.issue(key="token", user_id=user_id, amount=usd(amount), expires_in=600)
    return {"X-Payment-Token": issued_token.token}


def _charged() -> int:
    response = Response.objects.get()
    return sum(Transfer.objects.filter(response_id=response.pk).values_list("amount", flat=True))


@pytest.mark.parametrize("path", BODIES)
def test_the_text_of_an_answer_that_failed_is_in_its_error(
    web: httpx.Client, alice: Person, path: str
) -> None:
    priced("dear", "fail", per_answer="0.2")
    answer = web.post(f"/agents/dear/{path}", json=BODIES[path], headers=_token(alice, "1"))
    response = Response.objects.get()
    assert answer.status_code == httpx.codes.BAD_GATEWAY
    assert response.text
    assert (answer.json()["partial_text"], answer.json()["response_id"]) == (
        response.text,
        response.pk,
    )
    assert answer.headers["X-Chat-Id"] == response.chat_id
    assert _charged() == usd("0.2").amount
    assert clean()


@pytest.mark.parametrize("path", BODIES)
def test_an_answer_that_failed_before_its_first_word_is_free(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def fails(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Fail(UPPError("No.", code=ErrorCode.PROVIDER_ERROR, provider="scripted"))

    monkeypatch.setitem(scripts.SCRIPTS, "fails", fails)
    priced("dear", "fails", per_answer="0.2")
    answer = web.post(f"/agents/dear/{path}", json=BODIES[path], headers=_token(alice, "1"))
    assert answer.status_code == httpx.codes.BAD_GATEWAY
    assert "partial_text" not in answer.json()
    assert _charged() == 0
    assert clean()


@pytest.mark.parametrize("path", BODIES)
def test_the_text_of_an_answer_that_outgrew_its_payment_is_in_the_refusal(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def long(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        for _ in range(400):
            yield Text("word after word ")

    monkeypatch.setitem(scripts.SCRIPTS, "long", long)
    agent = priced("dear", "long", output_per_1k="1")
    agent.max_output_tokens = 100
    agent.save()
    answer = web.post(f"/agents/dear/{path}", json=BODIES[path], headers=_token(alice, "0.3"))
    wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists())
    response = Response.objects.get()
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED, answer.text
    assert answer.json()["partial_text"] == response.text != ""
    assert 0 < _charged() <= usd("0.3").amount
    wait_until(clean)
