"""Requests in the form that Codex CLI sends, taken from its public source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import uamp
from gateway_app.openai_responses.tools import ClientTools, custom_input
from sessions_app.models import Response
from tests.gateway_app.completions.requests import PIXEL
from tests.gateway_app.openai_responses.requests import events_of, read, respond, text_of
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

HEADERS = {
    "Accept": "text/event-stream",
    "OpenAI-Beta": "responses=experimental",
    "originator": "codex_cli_rs",
    "User-Agent": "codex_cli_rs/0.92.0 (Debian 12; x86_64) xterm",
    "session_id": "019a0b5c-5b1e-7aa0-8e40-0123456789ab",
    "x-codex-turn-metadata": "{}",
}
GRAMMAR = 'start: "*** Begin Patch" LF hunk+ "*** End Patch" LF?'
SHELL: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "description": "Runs a shell command and returns its output.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}},
            "timeout_ms": {"type": "number"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}
PATCH: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
}
ORDERS: dict[str, Any] = {
    "type": "namespace",
    "name": "mcp__shop__",
    "description": "Orders",
    "tools": [
        {
            "type": "function",
            "name": "look_up",
            "description": "Look up an order",
            "strict": False,
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}}},
        }
    ],
}
TOOLS: list[dict[str, Any]] = [
    SHELL,
    PATCH,
    {"type": "web_search", "external_web_access": False},
    {"type": "image_generation", "output_format": "png"},
    {"type": "tool_search", "execution": "client", "description": "Search", "parameters": {}},
    ORDERS,
]


def message(role: str, *texts: str) -> dict[str, Any]:
    """Return a message as Codex sends it."""
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def request(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a request of Codex; `items` follow the question."""
    return {
        "model": "model",
        "instructions": "You are a coding agent.",
        "input": [
            message("developer", "<permissions instructions>read-only</permissions instructions>"),
            message(
                "user", "# AGENTS.md instructions", "<environment_context>\n</environment_context>"
            ),
            message("user", "Mend the test"),
            *items,
        ],
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": HEADERS["session_id"],
        "text": {"verbosity": "low"},
        "client_metadata": {"x-codex-installation-id": "8c6c0b6e"},
        **fields,
    }


def done(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a stream, as Codex takes them, without their ids."""
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"] == items
    # With `store` false, Codex sends items back without their ids.
    return [{name: item[name] for name in item if name != "id"} for item in items]


def test_a_turn_of_codex_calls_its_tools(web: httpx.Client, alice: Person) -> None:
    patch = "*** Begin Patch\n*** Delete File: ä.py\n*** End Patch"
    calls = (
        ("call_1", "shell", '{"command":["ls"]}'),
        ("call_2", "apply_patch", json.dumps({"input": patch})),
        ("call_3", "mcp__shop__look_up", '{"order":"7"}'),
    )
    with model_server(call_chunks(*calls), text_chunks("It is mended.")) as model:
        model.agent()
        first = events_of(respond(web, "model", request(), alice, **HEADERS))
        shell, custom, order = done(first)
        results = [
            {"type": "function_call_output", "call_id": shell["call_id"], "output": "a.py"},
            {"type": "custom_tool_call_output", "call_id": custom["call_id"], "output": "Done"},
            {
                "type": "function_call_output",
                "call_id": order["call_id"],
                "output": [
                    {"type": "input_text", "text": "a picture"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            },
        ]
        thought = {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Look first"}],
            "content": None,
            "encrypted_content": "gAAAA",
        }
        # The picture is in the result that comes first, and follows them all.
        body = request(thought, shell, custom, order, *reversed(results))
        second = events_of(respond(web, "model", body, alice, **HEADERS))

    assert shell == {
        "type": "function_call",
        "status": "completed",
        "call_id": shell["call_id"],
        "name": "shell",
        "arguments": '{"command":["ls"]}',
    }
    assert custom == {
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": custom["call_id"],
        "name": "apply_patch",
        "input": patch,
    }
    assert (order["name"], order["namespace"]) == ("look_up", "mcp__shop__")
    kinds = [event["type"] for event in first if "custom" in event["type"]]
    assert kinds == [
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
    ]
    offered = {tool["function"]["name"]: tool["function"] for tool in model.requests[0]["tools"]}
    assert list(offered) == ["shell", "apply_patch", "mcp__shop__look_up"]
    assert GRAMMAR in offered["apply_patch"]["description"]
    assert offered["apply_patch"]["parameters"]["required"] == ["input"]
    (answer,) = done(second)
    assert answer["content"][0]["text"] == "It is mended."
    *_, before, shell_result, patch_result, picture_result, picture = model.last["messages"]
    assert [call["function"]["name"] for call in before["tool_calls"]] == list(offered)
    assert json.loads(before["tool_calls"][1]["function"]["arguments"]) == {"input": patch}
    assert [each["content"] for each in (shell_result, patch_result, picture_result)] == [
        "a.py",
        "Done",
        "a picture",
    ]
    assert (picture["role"], picture["content"][-1]["type"]) == ("user", "image_url")


def test_a_response_shows_its_tools_as_they_were_sent(web: httpx.Client, alice: Person) -> None:
    with model_server(
        call_chunks(("c1", "apply_patch", '{"input": "x"}')), text_chunks("ok")
    ) as model:
        model.agent()
        body = request(
            store=True, stream=False, tool_choice={"type": "custom", "name": PATCH["name"]}
        )
        response = respond(web, "model", body, alice).json()
        (call,) = response["output"]
        result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"}
        follow = request(
            store=True, stream=False, previous_response_id=response["id"], input=[result]
        )
        answer = respond(web, "model", follow, alice).json()
        (again,) = read(web, response["id"], alice).json()["output"]
        items = read(web, f"{answer['id']}/input_items", alice, order="asc", limit=100).json()

    assert response["tools"] == [SHELL, PATCH, ORDERS]
    assert response["tool_choice"] == {"type": "custom", "name": "apply_patch"}
    assert (call["type"], call["input"]) == ("custom_tool_call", "x")
    assert again == call
    assert text_of(answer) == "ok"
    kinds = [item["type"] for item in items["data"]]
    assert kinds[-2:] == ["custom_tool_call", "custom_tool_call_output"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"input": "a\\nb"}', "a\nb"),
        ('{"input": 7}', '{"input": 7}'),
        ('{"text": "x"}', '{"text": "x"}'),
        ("*** Begin Patch", "*** Begin Patch"),
        ("[]", "[]"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=["text", "number", "another member", "no JSON", "list", "deep"],
)
def test_odd_arguments_of_a_custom_tool_are_shown_whole(arguments: str, expected: str) -> None:
    assert custom_input(arguments) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([{**ORDERS, "tools": ORDERS["tools"] * 65}] * 2, "tools"),
        ([{"type": "web_search"}], "tools[0].type"),
        ([SHELL, {"type": "mcp", "server_label": "x"}], "tools[1].type"),
        ([{"type": "custom"}], "tools[0].name"),
        ([{"type": "namespace", "tools": [SHELL]}], "tools[0].name"),
        (
            [{"type": "namespace", "name": "a", "tools": [{"type": "mcp"}]}],
            "tools[0].tools[0].type",
        ),
        ([{"type": "namespace", "name": "a", "tools": [ORDERS]}], "tools[0].tools[0].type"),
        ([{"type": "custom", "name": "a", "format": {"type": "x"}}], "tools[0].format.type"),
    ],
)
def test_tools_that_cannot_be_used_are_refused(
    web: httpx.Client, tools: list[dict[str, Any]], param: str
) -> None:
    answer = respond(web, "echo", {"tools": tools})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not Response.objects.exists()


def test_tools_in_tools_without_end_are_refused(web: httpx.Client) -> None:
    body = '{"input": "x", "tools": ' + '[{"type": "namespace", "name": "a", "tools": ' * 5000
    body += "[]" + "}]" * 5000 + "}"

    answer = web.post(
        "/agents/echo/responses", content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 400, answer.text
    assert not Response.objects.exists()


@pytest.mark.parametrize(
    "spoilt", ["x", {"shell": 7}, {"shell": {"format": {"type": "x"}}}, [1], 7], ids=str
)
def test_spoilt_facts_about_tools_leave_functions(spoilt: Any) -> None:
    call = uamp.ToolCallData(id="c", name="shell", arguments="{}")

    assert ClientTools(spoilt).called("fc_1", call)["type"] == "function_call"
