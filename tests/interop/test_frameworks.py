"""Frameworks that speak like OpenAI's client; `make interop` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)


def test_langchain_and_pydantic_ai(run_client: Run) -> None:
    seen = run_client("frameworks", "frameworks_client.py")

    expected = {"whole": "Hello there", "stream": "Hello there", "calls": ["search"]}
    assert seen["langchain"] == [expected, expected]
    answered = "The tool answered: three cats"
    assert seen["pydantic_ai"] == [{"whole": answered, "stream": answered}] * 2


def test_litellm(run_client: Run) -> None:
    seen = run_client("litellm", "litellm_client.py")

    assert (seen["whole"], seen["stream"]) == ("Hello there", "Hello there")
    assert (seen["missing"], seen["thought"]) == ("NotFoundError", True)


def test_openai_in_javascript_and_vercel(run_client: Run) -> None:
    seen = run_client("node", "openai_clients.mjs")

    assert (seen["whole"], seen["stream"]) == ("Hello there", "Hello there")
    assert (seen["unpaid"], seen["wrong"]) == ([402, None], [400, "n"])
    assert seen["vercel"] == "Hello there"
    thought = "I thought about it. You asked: Hello there"
    assert seen["vercelStream"] == {"text": thought, "thinks": True, "failed": False}
    assert seen["vercelUnpaid"] == [402, None]


def test_openai_agents(run_client: Run) -> None:
    seen = run_client("frameworks", "agents_client.py")

    assert (seen["whole"], seen["requests"]) == ("The tool answered: three cats", 2)
    assert (seen["streamed"], seen["chain"]) == (
        "The tool answered: three dogs",
        "The tool answered: three owls",
    )
    assert {"raw_response_event", "run_item_stream_event"} <= set(seen["kinds"])
    assert (seen["history"], seen["chained"]) == ("Again", "More")


def test_openai_responses_in_javascript(run_client: Run) -> None:
    seen = run_client("node", "openai_responses.mjs")

    assert (seen["whole"], seen["chained"]) == ("Hello there", "Again")
    assert seen["stream"]["text"] == "I thought about it. You asked: Hello there"
    assert seen["stream"]["thought"].startswith("The question has 2 words.")
    assert seen["stream"]["last"] == "response.completed"
    assert seen["tool"] == ["search", "The tool answered: three cats"]
    assert (seen["parsed"], seen["items"]) == ({"n": 3}, ["message"])
    assert (seen["background"], seen["kept"]) == (["in_progress", "cancelled"], "cancelled")
    assert seen["unpaid"] == 402
    assert seen["wrong"] == [400, "unsupported_parameter", "truncation"]
    assert seen["missing"] == [404, "unknown_session", None]
