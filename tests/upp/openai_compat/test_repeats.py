"""A provider answers a refusal with another request, such as one that pays."""

from dataclasses import replace

from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import llm
from upp.providers.http.failures import Failures
from upp.providers.http.transport import Post, Refusal
from upp.providers.openai_compat import OpenAICompatProvider


class PayingProvider(OpenAICompatProvider):
    """Sends a refused request again, with the price that the refusal named."""

    async def after_refusal(self, post: Post, refusal: Refusal, failures: Failures) -> Post | None:
        """Pay what a 402 demands."""
        del failures
        if refusal.status != 402:
            return None
        return replace(post, headers={**post.headers, "Payment": refusal.body.decode()})


async def test_a_refused_request_is_sent_again_as_its_provider_changes_it() -> None:
    async def answer(exchange: Exchange) -> None:
        if "Payment: 3 dollars" not in exchange.head:
            await exchange.refuse("402 Payment Required", b"3 dollars", "Connection: close")
            return
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="paid")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = PayingProvider(base_url=wire.url)
        turn = await llm(model=provider("m1")).generate("hi")
        await provider.aclose()
    assert turn.response.text == "paid"
    assert len(wire.exchanges) == 2
