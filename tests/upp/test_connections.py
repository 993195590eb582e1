"""The connections to models' servers: kept, bounded, verified, and led only where they should."""

from __future__ import annotations

import asyncio
import gc
import gzip
import ssl
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents_app.web_server import write_certificate
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ErrorCode, LLMRequest, ProviderConfig, StreamEvent, UPPError, UserMessage, llm
from upp.providers.http import connections
from upp.providers.http.connections import Sessions
from upp.providers.openai_compat import OpenAICompatProvider

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp

ANSWER = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment name no proxy and no authority."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


async def say_a(exchange: Exchange) -> None:
    """Answer well."""
    await exchange.send(STREAM_HEAD + ANSWER)


async def ask(provider: OpenAICompatProvider, text: str = "hi") -> str:
    return (await llm(model=provider("m")).generate(text)).response.text


async def failure(url: str, text: str = "hi", **config: Any) -> UPPError:
    provider = OpenAICompatProvider(base_url=url, config=ProviderConfig(**config))
    with pytest.raises(UPPError) as caught:
        await asyncio.wait_for(ask(provider, text), 20)
    await provider.aclose()
    return caught.value


async def test_a_connection_is_used_again() -> None:
    connected = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            (length,) = (
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            )
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()

    async with await asyncio.start_server(connection, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        provider = OpenAICompatProvider(base_url=f"http://127.0.0.1:{port}/v1")
        assert [await ask(provider) for _ in range(3)] == ["a", "a", "a"]
        assert connected == 1
        assert provider.session(provider.config) is provider.session(provider.config)
        await provider.aclose()
        assert await ask(provider) == "a"
        assert connected == 2, "a provider that was closed connects anew"
        await provider.aclose()
        await provider.aclose()


async def test_an_address_is_asked_for_without_a_body() -> None:
    async with serve(say_a) as wire:
        sessions = Sessions()
        response = await sessions.session().get(wire.url, headers={"X-Asked": "1"}, silent=20)
        assert await response.read() == ANSWER
        await sessions.aclose()
    assert wire.exchanges[0].head.startswith("GET ")
    assert "X-Asked: 1" in wire.exchanges[0].head


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Moved", "308 Moved"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with serve(say_a) as other:

        async def redirect(exchange: Exchange) -> None:
            await exchange.refuse(status, b"{}", f"Location: {other.url}/chat/completions")

        async with serve(redirect) as wire:
            error = await failure(wire.url)
    assert error.status_code == int(status[:3])
    assert other.exchanges == []


async def test_cookies_are_not_kept() -> None:
    async def answer(exchange: Exchange) -> None:
        head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nSet-Cookie: who=me; Path=/\r\n\r\n")
        await exchange.send(head + ANSWER)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url="http://model.test/v1")
        provider.config = ProviderConfig(base_url="http://model.test/v1", connector=wire.connector)
        assert [await ask(provider) for _ in range(2)] == ["a", "a"]
        await provider.aclose()
    assert len(wire.exchanges) == 2
    assert all("cookie:" not in exchange.head.lower() for exchange in wire.exchanges)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_the_environments_proxy_is_asked(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(say_a) as wire:
        monkeypatch.setenv(variable.lower(), f"me:se%40cret@127.0.0.1:{wire.port}")
        provider = OpenAICompatProvider(base_url="http://model.test/v1")
        assert await ask(provider) == "a"
        await provider.aclose()
    head = wire.exchanges[0].head
    assert head.startswith("POST http://model.test/v1/chat/completions HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6c2VAY3JldA==" in head


async def test_a_proxy_is_asked_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.refuse("403 Forbidden", b"no")

    async with serve(refuse) as wire:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{wire.port}")
        error = await failure("https://model.test/v1")
    assert error.code == ErrorCode.NETWORK_ERROR
    assert wire.exchanges[0].head.startswith("CONNECT model.test:443 HTTP/1.1\r\n")


async def test_a_host_without_a_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with serve(say_a) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        assert await ask(provider) == "a"
        await provider.aclose()


async def test_connections_of_the_caller_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with serve(say_a) as wire:
        config = ProviderConfig(base_url="http://model.test/v1", connector=wire.connector)
        provider = OpenAICompatProvider(config=config)
        assert await ask(provider) == "a"
        await provider.aclose()


async def test_the_credentials_of_an_address_are_sent() -> None:
    async with serve(say_a) as wire:
        url = wire.url.replace("//", "//me:se%40cret@")
        provider = OpenAICompatProvider(base_url=url, api_key="key")
        assert await ask(provider) == "a"
        await provider.aclose()
    assert "Authorization: Basic bWU6c2VAY3JldA==" in wire.exchanges[0].head
    assert "key" not in wire.exchanges[0].head


@pytest.mark.parametrize(
    "url", ["ftp://model.test/v1", "/v1", "http://", "http://[::1/v1", "http://model.test:port/v1"]
)
async def test_an_invalid_address_is_a_network_error(url: str) -> None:
    error = await failure(url)
    assert error.code == ErrorCode.NETWORK_ERROR
    assert error.message.endswith("failed: InvalidURL")


async def test_a_name_without_an_address_is_a_network_error() -> None:
    error = await failure("http://nowhere.invalid/v1/s3cret")
    assert error.code == ErrorCode.NETWORK_ERROR
    assert "at http://nowhere.invalid:80 failed: ClientConnectorDNSError: " in error.message
    assert "s3cret" not in error.message


async def test_a_server_that_speaks_no_http_is_a_network_error() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with serve(answer) as wire:
        assert (await failure(wire.url)).code == ErrorCode.NETWORK_ERROR


async def test_headers_have_bounds() -> None:
    async def answer(exchange: Exchange) -> None:
        long = b"X-Long: " + b"x" * 1_000_000
        await exchange.send(STREAM_HEAD.replace(b"\r\n\r\n", b"\r\n" + long + b"\r\n\r\n") + ANSWER)

    async with serve(answer) as wire:
        assert (await failure(wire.url)).code == ErrorCode.NETWORK_ERROR


async def test_what_is_compressed_is_not_unpacked_into_memory() -> None:
    packed = gzip.compress(b"data: " + bytes(200_000_000), 1)

    async def answer(exchange: Exchange) -> None:
        head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        await exchange.send(head + packed)

    async with serve(answer) as wire:
        tracemalloc.start()
        try:
            error = await failure(wire.url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert error.code == ErrorCode.INVALID_RESPONSE
    assert peak < 40_000_000


async def test_other_tasks_run_while_much_is_unpacked() -> None:
    # 20 MB that arrive as 20 KB: nothing waits for the network while they are unpacked.
    piece = b'data: {"choices":[{"delta":{"content":"' + b"a" * 950 + b'"}}]}\n\n'
    packed = gzip.compress(piece * 20_000 + b"data: [DONE]\n\n", 9)
    turns = 0
    events_in_turn: Counter[int] = Counter()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def count_event(_: StreamEvent) -> None:
        events_in_turn[turns] += 1

    async def answer(exchange: Exchange) -> None:
        head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        await exchange.send(head + packed)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        counting = asyncio.create_task(count_turns())
        await provider("m").infer(LLMRequest(messages=(UserMessage(content="hi"),)), count_event)
        counting.cancel()
        await provider.aclose()
    assert sum(events_in_turn.values()) > 20_000
    # In one turn of the loop, not what came in all.
    assert max(events_in_turn.values()) < 1000


async def test_a_compressed_answer_is_read() -> None:
    async def answer(exchange: Exchange) -> None:
        head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        await exchange.send(head + gzip.compress(ANSWER))

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        assert await ask(provider) == "a"
        await provider.aclose()


def server_tls(tmp_path: Path, name: str) -> ssl.SSLContext:
    path = tmp_path / "certificate.pem"
    write_certificate(path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("name", ["model.test", "other.test"])
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_certificate_is_of_an_authority_and_of_the_host(
    name: str, *, trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = server_tls(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with serve(say_a, tls=tls) as wire:

        def connector() -> aiohttp.TCPConnector:
            http_connector = connections.connector_with()
            return wire.connector(ssl=http_connector._ssl)

        config = ProviderConfig(base_url="https://model.test/v1", connector=connector)
        provider = OpenAICompatProvider(config=config)
        if trusted and name == "model.test":
            assert await ask(provider) == "a"
        else:
            with pytest.raises(UPPError, match="ClientConnectorCertificateError") as caught:
                await ask(provider)
            assert caught.value.code == ErrorCode.NETWORK_ERROR
            assert wire.exchanges == []
        await provider.aclose()


async def test_a_long_request_arrives_whole() -> None:
    text = "word " * 100_000

    async def answer(exchange: Exchange) -> None:
        assert exchange.body["messages"] == [{"role": "user", "content": text}]
        await exchange.send(STREAM_HEAD + ANSWER)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        assert await ask(provider, text) == "a"
        await provider.aclose()


async def test_a_server_that_takes_no_request_is_silent_too_long() -> None:
    async def idle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined] # of a socket's transport
        await asyncio.wait_for(over.wait(), 60)
        writer.close()

    over = asyncio.Event()
    async with await asyncio.start_server(idle, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        error = await failure(url, "x" * 20_000_000, timeout=0.3)
        over.set()
    assert error.code == ErrorCode.TIMEOUT


async def test_a_body_can_be_shown() -> None:
    body = connections._LongBody(b"text", 1)
    assert (body.decode(), body.size) == ("text", 4)


def test_each_loop_has_connections_of_its_own_and_a_dead_one_none() -> None:
    sessions = Sessions()

    async def session() -> connections.HttpSession:
        return sessions.session()

    first = asyncio.run(session())
    second = asyncio.run(session())
    assert first is not second
    assert first.client.closed, "the connections of a loop that ended are not kept"
    assert len(sessions._sessions) == 1


def test_a_provider_that_was_not_closed_ends_silently(
    caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    sessions: list[connections.HttpSession] = []

    async def leave_in_its_loop() -> aiohttp.BaseConnector:
        provider = OpenAICompatProvider(base_url="http://model.test/v1")
        sessions.append(provider.session(provider.config))
        connector = sessions[0].client.connector
        assert connector is not None
        del provider
        gc.collect()
        async with asyncio.timeout(20):
            while not connector.closed:  # noqa: ASYNC110 aiohttp has no event for it
                await asyncio.sleep(0.01)
        return connector

    async def leave(provider: OpenAICompatProvider) -> None:
        sessions.append(provider.session(provider.config))

    asyncio.run(leave_in_its_loop())
    asyncio.run(leave(OpenAICompatProvider(base_url="http://model.test/v1")))
    gc.collect()
    assert [session.client.closed for session in sessions] == [True, True]
    assert not caplog.records
    assert not recwarn.list


async def test_a_session_that_was_closed_is_let_go() -> None:
    sessions = Sessions()
    await sessions.session().client.close()
    del sessions
    gc.collect()


def test_the_environment_names_no_authority_for_those_who_do_not_ask_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_certificate(tmp_path / "certificate.pem", "model.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    assert len(connections.certified().get_ca_certs()) > 1
    assert connections.certified().verify_mode == ssl.CERT_REQUIRED
