"""The tool `present`: an agent shows contents to the people in the chat (UAMP §8.5.4)."""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec

from agents_app.tools.registry import ToolError, ToolOutcome, schema_of
from uamp.storable_text import storable
from uamp.types.content import (
    ContentItem,
    MediaContent,
)

PRESENT = "present"
ATTACHMENTS = 16


class Presentation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `present`: the contents to show, in order."""

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


PRESENT_DESCRIPTION = "Show pictures or files, by their content_id, to the people in the chat."
PRESENT_SCHEMA = schema_of(Presentation)


class ContentPresenter(Protocol):
    """Shows contents in the chat of one response."""

    async def present(self, content_ids: Sequence[str]) -> tuple[ContentItem, ...]:
        """Return the items of contents that may be shown in this chat; raises ToolError."""


async def present(presenter: ContentPresenter, arguments: dict[str, Any]) -> ToolOutcome:
    """Show contents in the chat; errors are described for the model."""
    try:
        presentation = msgspec.convert(arguments, Presentation)
        items = await presenter.present(presentation.content_ids)
    except (msgspec.ValidationError, ToolError) as error:
        return ToolOutcome(result=f"Nothing was shown. {error}", is_error=True)
    caption = storable(presentation.caption)
    content_items = tuple(_described(item, caption) for item in items)
    return ToolOutcome(
        result=f"The chat sees {_count(len(content_items))} now.",
        content_items=content_items,
        is_presented=True,
    )


def _count(number: int) -> str:
    return "the content" if number == 1 else f"the {number} contents"


def _described(item: ContentItem, caption: str) -> ContentItem:
    if not caption or not isinstance(item, MediaContent):
        return item
    return msgspec.structs.replace(item, description=caption)
