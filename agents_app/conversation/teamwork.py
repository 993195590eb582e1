"""The tools that an agent has of its server itself: `present` and `delegate` (UAMP §8.5.4).

What passes between agents is named by content ids, and no text carries an address of a
content. What a person sees of it, `present` decides.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec

from agents_app.tools.registry import ToolError, ToolOutcome, schema_of, storable
from uamp.types.content import (
    ContentItem,
    FileContent,
    MediaContent,
    MediaUrl,
    ToolCallData,
    content_id_of,
    media_of,
)

PRESENT = "present"
DELEGATE = "delegate"

ATTACHMENTS = 16
TASK_CHARS = 32_000

_CONTENT_ADDRESS = re.compile(
    r"(?:https?://[^\s/\"'<>()]+)?/api/content/"
    r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:\?signature=[\w:%.~-]*)?"
)

_ContentIds = Annotated[tuple[str, ...], msgspec.Meta(max_length=ATTACHMENTS)]


class Presentation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `present` is asked: the contents to show, in their order."""

    content_ids: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            min_length=1,
            max_length=ATTACHMENTS,
            description="The content_id of each picture or file to show.",
        ),
    ]
    caption: Annotated[
        str, msgspec.Meta(max_length=1000, description="What they show, for who cannot see them.")
    ] = ""


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `delegate` is asked: who shall do what, with which contents."""

    agent: Annotated[str, msgspec.Meta(description="The agent's name.")]
    task: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=TASK_CHARS,
            description="The whole task: the agent sees nothing of this conversation.",
        ),
    ]
    attachments: Annotated[
        _ContentIds, msgspec.Meta(description="The content_id of each content that it needs.")
    ] = ()


class Doors(Protocol):
    """What a run and these tools need of the turn runner."""

    async def admit_step(self) -> None:
        """Let another step of the answer begin, once it is paid; raises AgentError."""

    def inference_sent(self) -> None:
        """Take note that an inference is sent: from now on its input is used."""

    async def admit_tool(self, call: ToolCallData) -> None:
        """Let a call of a tool run, once it is paid; raises AgentError."""

    async def wrote(self, text: str) -> None:
        """Count what the model writes into its calls, once it is paid; raises AgentError.

        An agent without a price does not say it.
        """

    async def present(self, content_ids: Sequence[str]) -> tuple[ContentItem, ...]:
        """Return the items of contents that may be shown in this chat; raises ToolError."""

    async def delegate(self, call: ToolCallData, order: Order) -> ToolOutcome:
        """Have another agent do a task, and wait for its answer."""


PRESENT_DESCRIPTION = "Show pictures or files, by their content_id, to the people in the chat."
PRESENT_SCHEMA = schema_of(Presentation)


def delegate_description(delegates: Sequence[tuple[str, str]]) -> str:
    """Return what the model is told of `delegate`; `delegates` are names with descriptions."""
    known = "".join(f"\n- {name}: {about}" if about else f"\n- {name}" for name, about in delegates)
    return (
        "Give a task to another agent and get its answer. Pass contents by their content_id as"
        f" attachments. The agents:{known}"
    )


def delegate_schema(delegates: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the JSON Schema of an Order for these agents."""
    schema = schema_of(Order)
    schema["properties"]["agent"]["enum"] = [name for name, _ in delegates]
    return schema


async def present(doors: Doors, arguments: dict[str, Any]) -> ToolOutcome:
    """Show contents to the chat; what is wrong is told in words that the model can read."""
    try:
        wanted = msgspec.convert(arguments, Presentation)
        items = await doors.present(wanted.content_ids)
    except (msgspec.ValidationError, ToolError) as error:
        return ToolOutcome(result=f"Nothing was shown. {error}", is_error=True)
    caption = storable(wanted.caption)
    shown = tuple(_described(item, caption) for item in items)
    return ToolOutcome(
        result=f"The chat sees {_count(len(shown))} now.", content_items=shown, is_presented=True
    )


async def delegate(doors: Doors, call: ToolCallData, arguments: dict[str, Any]) -> ToolOutcome:
    """Hand a task to another agent; what is wrong is told in words that the model can read."""
    try:
        order = msgspec.convert(arguments, Order)
    except msgspec.ValidationError as error:
        return ToolOutcome(result=f"The task was not given to anybody. {error}.", is_error=True)
    return await doors.delegate(call, msgspec.structs.replace(order, task=storable(order.task)))


def _count(number: int) -> str:
    return "the content" if number == 1 else f"the {number} contents"


def _described(item: ContentItem, caption: str) -> ContentItem:
    if not caption or not isinstance(item, MediaContent):
        return item
    return msgspec.structs.replace(item, description=caption)


def labelled(text: str, items: Sequence[ContentItem]) -> str:
    """Return a tool's result as the model reads it: its text, and the ids of what came with it."""
    labels = [label for item in items if (label := _label(item))]
    return "\n\n".join(part for part in (pure(text), "\n".join(labels)) if part)


def pure(text: str) -> str:
    """Return a text without addresses of contents: their ids take their place."""
    if "/api/content/" not in text:
        return text
    return _CONTENT_ADDRESS.sub(r"content_id \1", text)


def _label(item: ContentItem) -> str:
    if not isinstance(item, MediaContent):
        return ""
    medium = media_of(item)
    content_id = item.content_id or (
        content_id_of(medium.url) if isinstance(medium, MediaUrl) else None
    )
    if content_id is None:
        return ""
    kind = type(item).__struct_config__.tag
    said = [item.filename] if isinstance(item, FileContent) else []
    said += [item.description] if item.description else []
    return f"[{kind}: content_id={content_id}{''.join(f', {word}' for word in said)}]"
