"""The words of Chat Completions under each vendor's names."""

from typing import Any

import pytest

from upp.providers.parameters import (
    option_names,
    overridden,
    tool_parameters,
    unknown_parameters,
    vendor_parameters,
)

EVERY: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 7,
    "top_p": 0.9,
    "stop": "END",
    "seed": 3,
    "frequency_penalty": 1.0,
    "presence_penalty": -1.0,
    "logit_bias": {"50256": -100.0},
    "reasoning_effort": "medium",
    "verbosity": "low",
    "tool_choice": "none",
    "parallel_tool_calls": False,
}
NAMED: dict[str, Any] = {"type": "function", "function": {"name": "search"}}


def test_the_own_names_are_those_of_an_openai_compatible_server() -> None:
    expected = {name: EVERY[name] for name in EVERY if "tool" not in name}
    assert vendor_parameters("openai_compat", EVERY) == expected
    assert unknown_parameters("openai_compat", EVERY) == []


def test_what_anthropic_has_no_name_for_is_listed() -> None:
    assert vendor_parameters("anthropic", EVERY) == {
        "temperature": 0.5,
        "max_tokens": 7,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 4096},
    }
    assert unknown_parameters("anthropic", EVERY) == [
        "frequency_penalty",
        "logit_bias",
        "presence_penalty",
        "seed",
        "verbosity",
    ]


@pytest.mark.parametrize(
    ("seed", "folded"),
    [
        (7, 7),
        (-(2**31), -(2**31)),
        (2**31 - 1, 2**31 - 1),
        (2**31, -(2**31)),
        (2**32 + 7, 7),
        (2**63 - 1, -1),
        (-(2**63), 0),
    ],
)
def test_google_is_sent_32_bits_of_a_seed(seed: int, folded: int) -> None:
    assert vendor_parameters("google", {"seed": seed}) == {"seed": folded}
    assert vendor_parameters("openai_compat", {"seed": seed}) == {"seed": seed}


def test_google_has_names_of_its_own() -> None:
    assert vendor_parameters("google", EVERY) == {
        "temperature": 0.5,
        "maxOutputTokens": 7,
        "topP": 0.9,
        "stopSequences": ["END"],
        "seed": 3,
        "frequencyPenalty": 1.0,
        "presencePenalty": -1.0,
        "thinkingConfig": {"thinkingBudget": 4096},
    }
    unknown = ["logit_bias", "parallel_tool_calls", "verbosity"]
    assert unknown_parameters("google", EVERY) == unknown
    assert unknown_parameters("google", {"parallel_tool_calls": True}) == []


def test_a_foreign_provider_takes_none() -> None:
    assert unknown_parameters("other", {"top_p": 1}) == ["top_p"]
    assert vendor_parameters("other", {"top_p": 1}) == {}


@pytest.mark.parametrize("stop", [("a", "b"), ["a", "b"]])
def test_several_stop_words_stay_several(stop: Any) -> None:
    assert [*vendor_parameters("anthropic", {"stop": stop})["stop_sequences"]] == ["a", "b"]
    assert vendor_parameters("openai_compat", {"stop": stop}) == {"stop": stop}


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ("anthropic", {"thinking": {"type": "disabled"}}),
        ("google", {"thinkingConfig": {"thinkingBudget": 0}}),
        ("openai_compat", {"reasoning_effort": "none"}),
    ],
)
def test_a_model_may_be_asked_not_to_think(provider: str, expected: dict[str, Any]) -> None:
    assert vendor_parameters(provider, {"reasoning_effort": "none"}) == expected


def _google(mode: str, *names: str) -> dict[str, Any]:
    allowed = {"allowedFunctionNames": [*names]} if names else {}
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **allowed}}}


@pytest.mark.parametrize(
    ("provider", "choice", "parallel", "expected"),
    [
        ("openai_compat", None, None, {}),
        ("openai_compat", "auto", True, {"parallel_tool_calls": True}),
        ("openai_compat", "required", None, {"tool_choice": "required"}),
        ("openai_compat", NAMED, False, {"tool_choice": NAMED, "parallel_tool_calls": False}),
        ("anthropic", "auto", True, {}),
        ("anthropic", "none", False, {"tool_choice": {"type": "none"}}),
        ("anthropic", "required", None, {"tool_choice": {"type": "any"}}),
        (
            "anthropic",
            None,
            False,
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        (
            "anthropic",
            NAMED,
            False,
            {
                "tool_choice": {
                    "type": "tool",
                    "name": "search",
                    "disable_parallel_tool_use": True,
                }
            },
        ),
        ("google", "auto", True, {}),
        ("google", "none", None, _google("NONE")),
        ("google", "required", None, _google("ANY")),
        ("google", NAMED, None, _google("ANY", "search")),
        ("openai_realtime", None, None, {}),
        ("openai_realtime", "required", True, {"tool_choice": "required"}),
        (
            "openai_realtime",
            NAMED,
            None,
            {"tool_choice": {"type": "function", "name": "search"}},
        ),
        ("other", "required", None, {}),
    ],
)
def test_a_choice_of_tools_has_a_shape_for_each_vendor(
    provider: str, choice: Any, *, parallel: bool | None, expected: dict[str, Any]
) -> None:
    assert tool_parameters(provider, choice=choice, parallel=parallel) == expected


@pytest.mark.parametrize(
    ("provider", "own", "names"),
    [
        ("openai_compat", {}, {*EVERY} - {"tool_choice", "parallel_tool_calls"}),
        ("anthropic", {}, {"temperature", "max_tokens", "top_p", "stop"}),
        (
            "anthropic",
            {"thinking": {"type": "disabled"}},
            {"temperature", "max_tokens", "top_p", "stop"},
        ),
        ("anthropic", {"thinking": {"type": "adaptive"}}, {"stop"}),
        (
            "google",
            {},
            {"temperature", "max_tokens", "top_p", "stop", "seed"}
            | {"frequency_penalty", "presence_penalty"},
        ),
        ("scripted", {}, set()),
    ],
)
def test_the_options_that_hold_for_a_whole_answer(
    provider: str, own: dict[str, Any], names: set[str]
) -> None:
    assert option_names(provider, own) == names


@pytest.mark.parametrize(
    ("provider", "own", "options", "expected"),
    [
        ("openai_compat", {}, {}, {}),
        ("openai_compat", {"top_p": 1}, {"top_p": 0.5, "seed": None}, {"top_p": 0.5}),
        ("openai_compat", {"user": "u"}, {"tool_choice": "none"}, {"user": "u"}),
        ("openai_compat", {"max_tokens": 9}, {"max_tokens": 10}, {"max_tokens": 9}),
        ("openai_compat", {"max_tokens": 9}, {"max_tokens": 8}, {"max_tokens": 8}),
        (
            "openai_compat",
            {"max_completion_tokens": 9},
            {"max_tokens": 8},
            {"max_completion_tokens": 8},
        ),
        ("openai_compat", {"max_tokens": None}, {}, {"max_tokens": None}),
        ("openai_compat", {"max_tokens": None}, {"top_p": 1}, {"max_tokens": None, "top_p": 1}),
        ("openai_compat", {"max_tokens": None}, {"max_tokens": 8}, {"max_tokens": 8}),
        ("openai_compat", {"max_completion_tokens": 9}, {}, {"max_completion_tokens": 9}),
        (
            "openai_compat",
            {"max_completion_tokens": None},
            {"max_tokens": 8},
            {"max_completion_tokens": 8},
        ),
        ("anthropic", {"top_k": 4}, {"stop": "END"}, {"top_k": 4, "stop_sequences": ["END"]}),
        ("google", {"labels": {}}, {}, {"labels": {}}),
        (
            "google",
            {"generationConfig": {"topK": 4, "maxOutputTokens": 9}},
            {"top_p": 0.5, "max_tokens": 10},
            {"generationConfig": {"topK": 4, "maxOutputTokens": 9, "topP": 0.5}},
        ),
        ("google", {"generationConfig": None}, {"tool_choice": "none"}, {"generationConfig": None}),
        ("scripted", {"a": 1}, {"temperature": 1}, {"a": 1}),
    ],
)
def test_options_override_a_models_own_parameters(
    provider: str, own: dict[str, Any], options: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = dict(own)
    assert overridden(provider, own, options) == expected
    assert own == before
