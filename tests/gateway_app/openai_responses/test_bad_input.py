"""Requests that no client should send: each has its own 4xx in OpenAI's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.gateway_app.openai_responses.requests import SEARCH, read, respond

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person


def item(**members: Any) -> dict[str, Any]:
    """Return a request with one item."""
    return {"input": [members]}


def part(**members: Any) -> dict[str, Any]:
    """Return a request with one part of a message."""
    return item(role="user", content=[members])


OUTPUT = [{"type": "input_image"}]
BODIES: dict[str, tuple[Any, str | None]] = {
    "no input": ({"input": None}, "input"),
    "an input of a wrong type": ({"input": 7}, "input"),
    "an unknown role": (item(role="king", content="x"), "input[0].role"),
    "a message without a role": (item(content="x"), "input[0].role"),
    "a message without content": (item(role="user"), "input[0].content"),
    "an unknown item": (item(type="web_search_call", id="x"), "input[0].type"),
    "a call without a name": (
        item(type="function_call", call_id="c", arguments="{}"),
        "input[0].name",
    ),
    "a result without a call": (item(type="function_call_output", output="x"), "input[0].call_id"),
    "a picture without an address as a result": (
        item(type="function_call_output", call_id="c", output=OUTPUT),
        "input[0].output[0].image_url",
    ),
    "a custom call without an input": (
        item(type="custom_tool_call", call_id="c", name="x"),
        "input[0].input",
    ),
    "an unknown part": (part(type="smell"), "input[0].content[0].type"),
    "a text without text": (part(type="input_text"), "input[0].content[0].text"),
    "a picture without an address": (part(type="input_image"), "input[0].content[0].image_url"),
    "a file without data": (part(type="input_file"), "input[0].content[0].file_data"),
    "a file of another server": (
        part(type="input_file", file_id="file-1"),
        "input[0].content[0].file_id",
    ),
    "a picture of another server": (
        part(type="input_image", file_id="file-1"),
        "input[0].content[0].file_id",
    ),
    "thousands of items": ({"input": [{"role": "user", "content": "x"}] * 3000}, "input"),
    "a long name of a model": ({"model": "m" * 300}, "model"),
    "a temperature of 9": ({"temperature": 9}, "temperature"),
    "an effort that is none": ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    "much metadata": ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
    "long metadata": ({"metadata": {"a": "x" * 513}}, "metadata[...]"),
    "a tool without a name": ({"tools": [{"type": "function"}]}, "tools[0].name"),
    "a choice without a name": ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    "a schema that is not there": (
        {"text": {"format": {"type": "json_schema", "name": "x"}}},
        "text.format.schema",
    ),
    "hidden work in the background": ({"background": True, "store": False}, "background"),
    "an unknown predecessor": ({"previous_response_id": "resp_x"}, "previous_response_id"),
    "client tools in a chat": ({"conversation": {"id": "c"}, "tools": [SEARCH]}, "tools"),
    "a chat without a user": (
        {"input": [{"role": "system", "content": "x"}], "conversation": "c"},
        "input",
    ),
}


def test_what_cannot_be_read_is_refused_with_its_place(web: httpx.Client, alice: Person) -> None:
    for name, (body, place) in BODIES.items():
        answer = respond(web, "echo", body, alice)

        assert (name, answer.status_code) == (name, 400)
        error = answer.json()["error"]
        assert (name, error["param"]) == (name, place)
        assert error["type"] == "invalid_request_error"
        assert error["code"]


def test_a_predecessor_and_a_chat_exclude_each_other(web: httpx.Client, alice: Person) -> None:
    predecessor = respond(web, "echo", {}, alice)
    body = {"previous_response_id": predecessor.json()["id"]}

    for answer in (
        respond(web, "echo", {**body, "conversation": predecessor.headers["X-Chat-Id"]}, alice),
        respond(web, "echo", body, alice, **{"X-Chat-Id": predecessor.headers["X-Chat-Id"]}),
    ):
        assert (answer.status_code, answer.json()["error"]["param"]) == (
            400,
            "previous_response_id",
        )


def test_queries_have_bounds(web: httpx.Client, alice: Person) -> None:
    response_id = respond(web, "echo", {}, alice).json()["id"]

    for path, query, param in (
        (response_id, {"stream": "perhaps"}, "stream"),
        (response_id, {"stream": "true", "starting_after": "-1"}, "starting_after"),
        (f"{response_id}/input_items", {"limit": "0"}, "limit"),
        (f"{response_id}/input_items", {"limit": "101"}, "limit"),
        (f"{response_id}/input_items", {"order": "up"}, "order"),
        (f"{response_id}/input_items", {"after": "msg_x"}, "after"),
    ):
        answer = read(web, path, alice, **query)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_wrong_key_and_a_wrong_method_have_the_shape_too(web: httpx.Client) -> None:
    wrong = respond(web, "echo", {}, None, Authorization="Bearer nothing")
    method = web.get("/v1/responses")

    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")
    assert (method.status_code, method.headers["Allow"]) == (405, "POST")
    assert method.json()["error"]["message"]
