"""The options of an asker that a served agent announces, and what its model is sent."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from uamp.events import InputText
from uamp.types.capabilities import Capabilities
from uap import Agent, agent
from uap.serving.daemon import ServedAgent
from uap.serving.options import params_for
from upp import AdjustableModel, LLMCapabilities, LLMRequest, Model
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider
from upp.providers.openai_compat import OpenAICompatProvider
from upp.providers.scripted import ScriptedModel, ScriptedProvider, Step, Text


async def greet(_request: LLMRequest) -> AsyncIterator[Step]:
    yield Text("Hello")


@dataclass(frozen=True, kw_only=True)
class ToneModel(ScriptedModel):
    """A model of an author, which has one option of a caller and one that no client knows."""

    def options(self, params: Mapping[str, Any]) -> frozenset[str]:
        """See AdjustableModel."""
        return frozenset({"temperature", "tone"} - params.keys())

    def adjusted(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """See AdjustableModel."""
        return {**params, "warmth": options["temperature"]}


TONE = ToneModel(script=greet, model_id="tone")


def announced(model: Model, **options: Any) -> Capabilities:
    bot = agent(model=model, **options)
    return ServedAgent(name="helper", token="t", bot=bot).registration.capabilities


@pytest.mark.parametrize(
    ("model", "options", "names"),
    [
        (
            OpenAICompatProvider()("m"),
            {},
            (
                "frequency_penalty logit_bias max_tokens presence_penalty reasoning_effort seed"
                " stop temperature top_p verbosity"
            ),
        ),
        (OpenAICompatProvider(name="llama")("m"), {"params": {"seed": 1}}, None),
        (AnthropicProvider()("m"), {}, "max_tokens stop temperature top_p"),
        (
            GoogleProvider()("m"),
            {},
            "frequency_penalty max_tokens presence_penalty seed stop temperature top_p",
        ),
        (TONE, {}, "temperature"),
        (TONE, {"params": {"temperature": 1}}, ""),
        (ScriptedProvider(scripts={"s": greet})("s"), {}, ""),
    ],
)
def test_an_agent_announces_what_its_model_declares(
    model: Model, options: dict[str, Any], names: str | None
) -> None:
    extensions = announced(model, **options).extensions
    if names is None:
        assert extensions == announced(OpenAICompatProvider()("m")).extensions
    else:
        assert extensions == ({"options": names.split()} if names else {})


def test_an_agent_announces_whether_its_model_calls_tools() -> None:
    silent = ScriptedModel(script=greet, model_id="s", capabilities=LLMCapabilities(tools=False))
    for model, expected in ((TONE, True), (silent, False)):
        tools = announced(model).tools
        assert tools is not None
        assert tools.supports_tools is expected


@pytest.mark.parametrize(
    ("model", "context", "expected"),
    [
        (TONE, None, {"own": 1}),
        (TONE, {}, {"own": 1}),
        (TONE, {"params": ["temperature"]}, {"own": 1}),
        (TONE, {"params": {"temperature": "hot"}}, {"own": 1}),
        (TONE, {"params": {"temperature": 0.5, "tone": "warm"}}, {"own": 1, "warmth": 0.5}),
        (OpenAICompatProvider()("m"), {"params": {"seed": 7, "n": 9}}, {"own": 1, "seed": 7}),
        (ScriptedProvider(scripts={"s": greet})("s"), {"params": {"seed": 7}}, {"own": 1}),
    ],
)
def test_an_agent_keeps_to_the_options_of_a_chat(
    model: Model, context: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    bot: Agent = agent(model=model, params={"own": 1})
    assert params_for(bot, InputText(text="hi", context=context)) == expected


def test_only_a_model_that_declares_options_is_adjustable() -> None:
    assert isinstance(TONE, AdjustableModel)
    assert not isinstance(ScriptedProvider(scripts={"s": greet})("s"), AdjustableModel)
