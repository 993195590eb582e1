"""The tools `present` and `delegate` as an agent has them, and texts without addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.conversation import delegation_orders, presentation
from agents_app.tools.registry import ToolError, ToolOutcome
from tests.agents_app.run_context import Broker
from uamp.content_labels import labelled, pure
from uamp.types.content import FileContent, ImageContent, MediaUrl, TextContent, ToolCallData

if TYPE_CHECKING:
    from agents_app.conversation.delegation_orders import DelegationOrder

ID = "550e8400-e29b-41d4-a716-446655440000"
OTHER = "650e8400-e29b-41d4-a716-446655440000"
CALL = ToolCallData(id="call_1", name="delegate", arguments="{}")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("nothing", "nothing"),
        (f"see /api/content/{ID}.", f"see content_id {ID}."),
        (f"![x](https://chat.example/api/content/{ID})", f"![x](content_id {ID})"),
        (f"/api/content/{ID}?signature=1a:2-b_c.~%7E, so", f"content_id {ID}, so"),
        (f"/api/content/{ID.upper()}", f"content_id {ID.upper()}"),
        (f"a /api/content/{ID} b /api/content/{OTHER}", f"a content_id {ID} b content_id {OTHER}"),
        ("the path /api/content/ itself", "the path /api/content/ itself"),
    ],
)
def test_a_text_has_ids_in_the_place_of_addresses(text: str, reported: str) -> None:
    assert pure(text) == reported


def test_a_model_reads_the_ids_of_what_came_with_a_result() -> None:
    items = (
        ImageContent(image=MediaUrl(url=f"/api/content/{ID}"), description="a cat"),
        FileContent(
            file=MediaUrl(url="x"), filename="a.csv", mime_type="text/csv", content_id=OTHER
        ),
        TextContent(text="words"),
        ImageContent(image=MediaUrl(url="https://elsewhere.example/a.png")),
    )
    assert labelled(f"See /api/content/{ID}", items) == (
        f"See content_id {ID}\n\n[image: content_id={ID}, a cat]\n[file: content_id={OTHER}, a.csv]"
    )
    assert labelled("", items[:1]) == f"[image: content_id={ID}, a cat]"
    assert labelled("alone", ()) == "alone"


async def test_what_is_presented_has_its_caption_and_is_marked_so() -> None:
    outcome = await presentation.present(
        Broker(), {"content_ids": [ID, OTHER], "caption": "two cats"}
    )
    assert (outcome.result, outcome.is_presented) == ("The chat sees the 2 contents now.", True)
    assert [
        (item.content_id, item.description)
        for item in outcome.content_items
        if isinstance(item, ImageContent)
    ] == [(ID, "two cats"), (OTHER, "two cats")]
    presentation_outcome = await presentation.present(Broker(), {"content_ids": [ID]})
    assert presentation_outcome.result == "The chat sees the content now."


@pytest.mark.parametrize(
    "arguments", [{}, {"content_ids": []}, {"content_ids": [ID] * 17}, {"content_ids": ID}]
)
async def test_what_cannot_be_presented_is_reported(arguments: dict[str, object]) -> None:
    outcome = await presentation.present(Broker(), arguments)
    assert outcome.is_error
    assert not outcome.is_presented
    assert outcome.result.startswith("Nothing was shown. ")


async def test_a_content_that_may_not_be_shown_shows_nothing() -> None:
    class Closed(Broker):
        async def present(self, content_ids: object) -> tuple[()]:
            raise ToolError(f"There is no file {content_ids!r} in this chat.")

    outcome = await presentation.present(Closed(), {"content_ids": [ID]})
    assert outcome.is_error
    assert outcome.content_items == ()
    assert "There is no file" in outcome.result


async def test_an_order_that_fits_reaches_the_other_agent() -> None:
    broker = Broker(answer=lambda call: ToolOutcome(result=f"{call.id} done"))
    outcome = await delegation_orders.delegate(broker, CALL, {"agent": "worker", "task": "do it"})
    assert outcome == ToolOutcome(result="call_1 done")
    refused = await delegation_orders.delegate(broker, CALL, {"agent": "worker"})
    assert refused.is_error
    assert refused.result.startswith("The task was not given to an agent.")
    assert broker.calls == [CALL]


async def test_what_no_database_takes_is_replaced_in_words_that_are_kept() -> None:
    class Keeping(Broker):
        async def delegate(self, call: ToolCallData, order: DelegationOrder) -> ToolOutcome:
            return ToolOutcome(result=f"{call.id}: {order.task}")

    outcome = await delegation_orders.delegate(
        Keeping(), CALL, {"agent": "worker", "task": "do\0it"}
    )
    assert outcome.result == "call_1: do\N{REPLACEMENT CHARACTER}it"
    presentation_outcome = await presentation.present(
        Broker(), {"content_ids": [ID], "caption": "two\0cats"}
    )
    (item,) = presentation_outcome.content_items
    assert isinstance(item, ImageContent)
    assert item.description == "two\N{REPLACEMENT CHARACTER}cats"


def test_a_model_receives_the_names_of_the_agents_that_it_may_ask() -> None:
    delegates = [("darkroom", "Edits pictures."), ("quiet", "")]
    assert delegation_orders.delegate_description(delegates).endswith(
        "The agents:\n- darkroom: Edits pictures.\n- quiet"
    )
    schema = delegation_orders.delegate_schema(delegates)
    assert schema["properties"]["agent"]["enum"] == ["darkroom", "quiet"]
    assert schema["required"] == ["agent", "task"]
    # One agent's list is not another's.
    assert delegation_orders.delegate_schema([])["properties"]["agent"]["enum"] == []
