"""An agent's author chooses neither an inside host nor where a key of the server goes."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers import addresses
from agents_app.providers.addresses import (
    VENDOR_HOSTS,
    guarded_connector,
    may_take,
    target_of,
)
from agents_app.providers.clients import build_model, close_providers
from agents_app.selectors import AgentSpec
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ErrorCode, ProviderConfig, UPPError, llm
from upp.providers.http.transport import HttpModel

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
    # aiohttp itself refuses a number that is no address in the usual form.
    assert "leads to" in caplog.text or host == "2130706433"
    assert caught.value.code == ErrorCode.NETWORK_ERROR
    assert "leads to" not in str(caught.value), "what stands inside is not reported"


async def test_the_operators_own_address_needs_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(answer_here) as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        for options in ({}, {"base_url": wire.url}, {"base_url": f"{wire.url}/other"}):
            turn = await llm(model=build_model(agent(**options))).stream("hello").turn()
            assert turn.response.text == "here I am"
        await close_providers()
    keys = ["authorization: bearer key-of-openai" in e.head.lower() for e in wire.exchanges]
    assert keys == [True, False, False], "an address of a row gets no key that it does not name"


async def answer_here(exchange: Exchange) -> None:
    """Answer well."""
    await exchange.send(STREAM_HEAD)
    await exchange.delta(content="here I am")
    await exchange.finish()


async def test_a_connection_goes_to_the_address_that_was_looked_up_for_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[tuple[str, int]] = []

    async def look_up(host: str, port: int, _seconds: float) -> list[str]:
        looked_up.append((host, port))
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "look_up_async", look_up)
    # A proxy of the environment would look the name up itself.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    async with serve(answer_here) as wire:
        settings.UAMP_MODEL_ALLOW_HOSTS = [f"model.example:{wire.port}"]
        model = build_model(agent(base_url=f"http://model.example:{wire.port}/v1"))
        for _ in range(2):
            turn = await llm(model=model).stream("hello").turn()
            assert turn.response.text == "here I am"
        await close_providers()
    assert looked_up == [("model.example", wire.port)] * 2, "each connection has its own look-up"


@pytest.mark.parametrize("resolved", [["10.0.0.1"], ["93.184.215.14", "10.0.0.1"], []])
async def test_a_name_one_of_whose_addresses_is_inside_is_not_connected_to(
    resolved: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def look_up(*_: object) -> list[str]:
        return resolved

    monkeypatch.setattr(addresses, "look_up_async", look_up)
    model = build_model(agent(base_url="https://model.example/v1"))
    with caplog.at_level(logging.WARNING), pytest.raises(UPPError) as caught:
        await llm(model=model).stream("hello").turn()
    await close_providers()
    assert "leads to 10.0.0.1" in caplog.text or not resolved
    assert "10.0.0.1" not in str(caught.value)


async def test_a_name_server_that_does_not_answer_holds_up_no_other_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over = threading.Event()

    def getaddrinfo(host: str, *_args: object, **_named: object) -> list[Any]:
        if host == "silent.example":
            is_over.wait(120)
            raise OSError("no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))]

    async def resolve(host: str) -> list[str]:
        guard = addresses._Guard(target_of(f"https://{host}/v1"))
        return [result["host"] for result in await guard.resolve(host, 443)]

    monkeypatch.setattr(addresses, "_LOOK_UP_SECONDS", 120)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    silent = [asyncio.create_task(resolve("silent.example")) for _ in range(60)]
    try:
        await asyncio.sleep(0)
        assert await asyncio.wait_for(resolve("model.example"), 30) == ["93.184.215.14"]
        assert not any(task.done() for task in silent)
    finally:
        is_over.set()
        ended = await asyncio.gather(*silent, return_exceptions=True)
    assert all(isinstance(error, OSError) for error in ended)


async def test_a_request_for_another_host_is_not_sent(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = ["localhost:*"]
    async with serve(answer_here) as wire:
        model = build_model(agent(base_url="http://localhost:1/v1"))
        elsewhere = ProviderConfig(base_url=wire.url.replace("127.0.0.1", "localhost"))
        with caplog.at_level(logging.WARNING), pytest.raises(UPPError):
            await llm(model=model, config=elsewhere).stream("hello").turn()
        await close_providers()
    assert f"localhost:{wire.port} is not http://localhost:1" in caplog.text
    assert wire.exchanges == []


@pytest.mark.parametrize(
    ("address", "port"), [("127.0.0.1", 443), ("::1", 443), ("93.184.215.14", 22)]
)
async def test_no_socket_is_made_for_another_address(address: str, port: int) -> None:
    connector = guarded_connector(target_of("https://model.example/v1"))
    make = connector._socket_factory  # type: ignore[attr-defined] # what aiohttp calls
    with pytest.raises(OSError, match="cannot be reached"):
        make((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)))
    make((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))).close()
    await connector.close()


@pytest.mark.parametrize(
    ("address", "is_believed"),
    [
        ("https://api.groq.com/openai/v1", True),
        ("https://models.example/v1", True),
        ("https://models.example:8443/v1", False),
        ("https://api.groq.com.example/v1", False),
        ("http://api.groq.com:8000/v1", False),
        ("http://127.0.0.1:11434/v1", False),
    ],
)
def test_only_vendors_and_the_operators_server_count_as_they_like(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, address: str, *, is_believed: bool
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = ["api.groq.com:8000", "127.0.0.1:11434"]
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    model = build_model(agent(base_url=address))
    assert isinstance(model, HttpModel)
    assert (model.server.config.hidden_tokens is None) is is_believed


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
