"""Keys, headers and requests that are never sent, and their errors."""

import json

import pytest

from tests.upp.odd_servers.pieces import DONE
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import DynamicKey, ErrorCode, ProviderConfig, UPPError, llm
from upp.providers.openai_compat import OpenAICompatProvider


@pytest.mark.parametrize(
    ("api_key", "header"), [("sk-secret\n", "Bearer sk-secret"), (" \n", None)]
)
async def test_space_around_a_key_is_stripped(api_key: str, header: str | None) -> None:
    async def answer(exchange: Exchange) -> None:
        lines = exchange.head.split("\r\n")
        headers = [line for line in lines if line.lower().startswith("authorization: ")]
        assert headers == ([f"Authorization: {header}"] if header else [])
        await exchange.send(STREAM_HEAD + DONE)

    async with serve(answer) as wire:
        server = OpenAICompatProvider(base_url=wire.url, api_key=api_key)
        assert (await llm(model=server("m")).generate("hi")).response.text == ""
        await server.aclose()


@pytest.mark.parametrize("api_key", ["sk-sec\nret", "\u201csk-secret\u201d"])
async def test_an_invalid_key_is_refused_and_not_quoted(api_key: str) -> None:
    server = OpenAICompatProvider(base_url="http://127.0.0.1:9", api_key=api_key)
    with pytest.raises(UPPError) as caught:
        await llm(model=server("m")).generate("hi")

    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED
    assert "sec" not in json.dumps(caught.value.to_json())


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            OSError("vault"),
            "AUTHENTICATION_FAILED",
            "The key for openai_compat could not be obtained: OSError",
        ),
        (UPPError("later", code=ErrorCode.RATE_LIMITED), "RATE_LIMITED", "later"),
    ],
)
async def test_a_key_that_cannot_be_got_is_an_error_of_its_own(
    raised: Exception, code: str, message: str
) -> None:
    async def get_key() -> str:
        raise raised

    server = OpenAICompatProvider(base_url="http://127.0.0.1:9", api_key=DynamicKey(get_key))
    with pytest.raises(UPPError, match=message) as caught:
        await llm(model=server("m")).generate("hi")

    assert caught.value.code == code


async def test_a_key_of_the_environment_is_looked_at_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    assert (await OpenAICompatProvider().connection(None))[1] == "sk-secret"


@pytest.mark.parametrize("value", ["Bearer sec\nret", "Bearer sec\u201dret"])
async def test_a_header_that_cannot_be_sent_is_not_quoted(value: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + DONE)

    async with serve(answer) as wire:
        config = ProviderConfig(headers={"Authorization": value})
        server = OpenAICompatProvider(base_url=wire.url, config=config)
        with pytest.raises(UPPError) as caught:
            await llm(model=server("m")).generate("hi")
        await server.aclose()

    assert caught.value.code == ErrorCode.INVALID_REQUEST
    assert "sec" not in json.dumps(caught.value.to_json())


async def test_a_request_that_json_cannot_represent_is_refused() -> None:
    server = OpenAICompatProvider(base_url="http://127.0.0.1:9")
    with pytest.raises(UPPError, match="The request is not JSON") as caught:
        await llm(model=server("m"), params={"stop": object()}).generate("hi")
    await server.aclose()

    assert caught.value.code == ErrorCode.INVALID_REQUEST
