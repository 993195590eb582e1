"""Capabilities that the server and its agents announce."""

import pytest

from agents_app.capabilities import agent_capabilities, models_list, server_capabilities
from agents_app.selectors import AgentSpec
from uamp.events.tables import CLIENT_EVENTS, SERVER_EVENTS


def test_a_scripted_agent_takes_text() -> None:
    able = agent_capabilities(AgentSpec(id="a", name="thinker", options={"script": "thinker"}))
    assert (able.id, able.model_id, able.provider) == ("thinker", "thinker", "uamp-server")
    assert (able.modalities, able.image, able.file) == (("text",), None, None)
    assert (able.supports_streaming, able.supports_thinking) == (True, True)
    assert able.provides is None
    assert not agent_capabilities(AgentSpec(id="a", name="echo")).supports_thinking


def test_an_agent_with_csv_report_takes_files() -> None:
    able = agent_capabilities(AgentSpec(id="a", name="report", tools=("csv_report",)))
    assert able.modalities == ("text", "file")
    assert able.file is not None
    assert able.file.supported_mime_types == ("text/csv", "text/tab-separated-values")
    assert able.tools is not None
    assert able.tools.built_in_tools == able.provides == ("csv_report",)


@pytest.mark.parametrize(
    "spec",
    [
        AgentSpec(id="a", name="careful", tools=("edit_picture",)),
        AgentSpec(id="a", name="studio", options={"script": "studio"}, tools=("present",)),
    ],
)
def test_a_scripted_agent_that_edits_pictures_takes_them(spec: AgentSpec) -> None:
    able = agent_capabilities(spec)
    assert able.modalities == ("text", "image")
    assert able.image is not None
    assert able.image.formats == ("png", "jpeg", "gif", "webp")


@pytest.mark.parametrize("provider", ["openai_compat", "anthropic", "google"])
def test_an_agent_with_a_model_takes_media(provider: str) -> None:
    options = {"context_window": 128_000, "max_output_tokens": 4096}
    spec = AgentSpec(id="a", name="gpt", provider=provider, options=options)
    able = agent_capabilities(spec)
    assert able.modalities == (
        ("text", "image", "audio", "file") if provider == "google" else ("text", "image", "file")
    )
    assert able.image is not None
    assert able.file is not None
    assert able.file.supports_pdf
    assert (able.context_window, able.max_output_tokens) == (128_000, 4096)


def test_the_server_lists_its_tools() -> None:
    able = server_capabilities()
    assert able.tools is not None
    assert able.tools.built_in_tools == (
        "csv_report",
        "fetch_page",
        "search_chat",
        "edit_picture",
    )


def test_the_server_lists_what_happens_in_chats() -> None:
    able = server_capabilities().conversation
    assert able is not None
    assert {
        *(
            "chat.fork",
            "chat.update",
            "input.typing",
            "message.delete",
            "message.edit",
            "message.pin",
        ),
        *("message.read", "participant.add", "reaction.add", "voice.invite"),
    } <= set(able.client_events or ())
    assert {
        *("agent.stopped", "chat.forked", "chat.updated", "message.created", "message.deleted"),
        *("message.edited", "message.pinned", "participant.left", "presence.typing"),
        *("reaction.added", "reaction.removed", "voice.end"),
    } <= set(able.server_events or ())
    assert {
        *(
            "ask_again",
            "deletes",
            "edits",
            "forks",
            "members",
            "pins",
            "reactions",
            "search",
            "versions",
        ),
    } <= set(able.features or ())


def test_what_a_turn_is_made_of_is_not_listed() -> None:
    able = server_capabilities().conversation
    assert able is not None
    listed = {*(able.client_events or ()), *(able.server_events or ())}
    turns = ("session.", "response.", "tool.", "payment.", "audio.", "input.text", "ping")
    assert not [name for name in listed if name.startswith(turns)]
    assert listed <= CLIENT_EVENTS.keys() | SERVER_EVENTS.keys()


def test_agents_are_models_of_the_list() -> None:
    assert models_list([AgentSpec(id="a", name="echo", created_at=5, owner_id=7)]) == [
        {"id": "echo", "object": "model", "created": 5, "owned_by": "uamp-server"}
    ]
