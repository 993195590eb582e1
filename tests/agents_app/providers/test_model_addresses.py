"""An agent's author chooses neither an inside host nor where a key of the server goes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers.addresses import VENDOR_HOSTS, may_take
from agents_app.providers.clients import build_model, close_providers
from agents_app.selectors import AgentSpec
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ErrorCode, UPPError, llm

if TYPE_CHECKING:
    from pytest_django import Settings

PROVIDERS = ("openai_compat", "anthropic", "google")


@pytest.fixture(autouse=True)
def nothing_is_allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow what an operator allows who set nothing."""
    settings.UAMP_MODEL_ALLOW_HOSTS = []
    for prefix in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.delenv(f"{prefix}_BASE_URL", raising=False)
        monkeypatch.setenv(f"{prefix}_API_KEY", f"key-of-{prefix}")


def agent(provider: str = "openai_compat", **options: Any) -> AgentSpec:
    return AgentSpec(id="a", name="sly", provider=provider, model="m", options=options)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:11434/v1",
        "http://example.com/v1",
        "https://example.com:22/v1",
        "https://localhost/v1",
        "https://user:password@example.com/v1",
        "https://example.com/v1#fragment",
    ],
)
def test_an_address_inside_is_not_asked(provider: str, address: str) -> None:
    with pytest.raises(UPPError, match="UAMP_MODEL_ALLOW_HOSTS") as caught:
        build_model(agent(provider, base_url=address))
    assert caught.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "2130706433",
     "0x7f.1", "[64:ff9b::7f00:1]", "localhost"],
)  # fmt: skip
async def test_a_name_or_number_that_leads_inside_is_not_connected_to(
    host: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["uamp.example"]
    model = build_model(agent(base_url=f"https://{host}:8443/v1"))
    with caplog.at_level(logging.WARNING), pytest.raises(UPPError) as caught:
        await llm(model=model).stream("hello").turn()
    assert "leads to" in caplog.text
    assert "leads to" not in str(caught.value), "what stands inside is not told"


async def test_the_operators_own_address_needs_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="here I am")
        await exchange.finish()

    async with serve(answer) as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        for options in ({}, {"base_url": wire.url}, {"base_url": f"{wire.url}/other"}):
            turn = await llm(model=build_model(agent(**options))).stream("hello").turn()
            assert turn.response.text == "here I am"
        await close_providers()
    keys = ["authorization: bearer key-of-openai" in e.head.lower() for e in wire.exchanges]
    assert keys == [True, False, False], "an address of a row gets no key that it does not name"


@pytest.mark.parametrize(
    ("variable", "address", "goes"),
    [
        *((name, f"https://{host}/v1", True) for name, host in VENDOR_HOSTS.items()),
        ("OPENAI_API_KEY", "http://api.openai.com/v1", False),
        ("OPENAI_API_KEY", "https://api.openai.com.evil.example/v1", False),
        ("OPENAI_API_KEY", "https://api.anthropic.com", False),
        ("ANTHROPIC_API_KEY", "https://api.openai.com/v1", False),
        ("SENDGRID_API_KEY", "https://api.openai.com/v1", False),
        ("OTHER_API_KEY", "https://evil.example/v1", False),
        ("OTHER_API_KEY", "http://models.intranet:8000/v1", True),
        ("OPENAI_API_KEY", "http://models.intranet:8000/v1", True),
        ("OPENAI_API_KEY", "http://models.intranet:8001/v1", False),
        ("OPENAI_API_KEY", "http://own.intranet:11434/v1", True),
        ("ANTHROPIC_API_KEY", "http://own.intranet:11434/v1", False),
    ],
)
def test_a_key_goes_to_its_vendor_or_where_the_operator_allows(
    variable: str, address: str, *, goes: bool, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = ["models.intranet:8000"]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://own.intranet:11434/v1")
    assert may_take(variable, address) is goes


@pytest.mark.parametrize(
    ("provider", "variable", "address"),
    [
        ("openai_compat", "OPENAI_API_KEY", "https://evil.example/v1"),
        ("openai_compat", "ANTHROPIC_API_KEY", None),
        ("anthropic", "OPENAI_API_KEY", None),
    ],
)
def test_an_agent_cannot_have_a_key_sent_elsewhere(
    provider: str, variable: str, address: str | None
) -> None:
    options = {"api_key_env": variable, **({} if address is None else {"base_url": address})}
    with pytest.raises(UPPError, match="is not for") as caught:
        build_model(agent(provider, **options))
    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED
