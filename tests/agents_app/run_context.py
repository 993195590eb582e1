"""A tool broker and a tool context for tests of the runtime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents_app.conversation.delegation_orders import DelegationOrder
from agents_app.tools.registry import (
    FoundMessage,
    ReadContent,
    ServerTool,
    ToolCancelled,
    ToolError,
    ToolOutcome,
)
from uamp.events import Event, text_delta
from uamp.json_patch import PatchOperation
from uamp.shared_state import StateChange, VersionedState, change_state
from uamp.types.content import ContentItem, ImageContent, MediaUrl, ToolCallData

CSV_ID = "550e8400-e29b-41d4-a716-446655440000"


def as_event(piece: Event | str) -> Event:
    """Return output of a run as an event: text is a delta of the response `r1`."""
    return text_delta("r1", piece) if isinstance(piece, str) else piece


@dataclass
class Broker:
    """Answers calls with `answer` and remembers them; a long tool is run here, without a worker."""

    answer: Callable[[ToolCallData], ToolOutcome] | None = None
    context: "Context | None" = None
    calls: list[ToolCallData] = field(default_factory=list)
    state: VersionedState = field(default_factory=VersionedState)

    async def admit_step(self) -> None:
        """Let it begin: nothing has a price."""

    def inference_sent(self) -> None:
        """Let it be sent."""

    async def admit_tool(self, call: ToolCallData) -> None:
        """Let it run."""

    async def wrote(self, text: str) -> None:
        """Let it be written."""

    async def present(self, content_ids: Sequence[str]) -> tuple[ContentItem, ...]:
        """Show what exists."""
        return tuple(
            ImageContent(image=MediaUrl(url=f"/api/content/{content_id}"), content_id=content_id)
            for content_id in content_ids
        )

    async def shared_state(self) -> VersionedState:
        """Return the state."""
        return self.state

    async def change_state(
        self, patch: Sequence[PatchOperation], *, version: int
    ) -> VersionedState:
        """Change the state."""
        changed = change_state(self.state, StateChange(patch=patch, version=version))
        self.state = self.state if changed is None else changed.now
        return self.state

    async def delegate(self, call: ToolCallData, order: DelegationOrder) -> ToolOutcome:
        """Answer for the other agent."""
        del order
        return await self.client_tool(call)

    async def client_tool(self, call: ToolCallData) -> ToolOutcome:
        """Answer a client's tool."""
        self.calls.append(call)
        assert self.answer is not None
        return self.answer(call)

    async def hand_over(self, call: ToolCallData) -> None:
        """Remember a call that ends the answer."""
        self.calls.append(call)

    async def long_tool(self, tool: ServerTool, call: ToolCallData) -> ToolOutcome:
        """Answer a long tool."""
        self.calls.append(call)
        if self.answer is not None:
            return self.answer(call)
        assert self.context is not None
        return tool.run(self.context, {"content_id": CSV_ID})


@dataclass
class Media:
    """Contents by id."""

    contents: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return a content or raise LookupError."""
        self.asked.append(content_id)
        return self.contents[content_id]


@dataclass
class Context:
    """A tool's context that keeps what the tool reported and wrote."""

    data: bytes = b""
    filename: str = "sales.csv"
    call_id: str = "call_1"
    cancel_at: str | None = None
    reported: list[dict[str, Any]] = field(default_factory=list)
    written: list[tuple[bytes, str, str]] = field(default_factory=list)
    messages: Sequence[FoundMessage] = ()
    searched: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """Keep it."""
        if self.cancel_at is not None and stage == self.cancel_at:
            raise ToolCancelled
        self.reported.append(
            {
                "percent": percent,
                "step": step,
                "total_steps": total_steps,
                "stage": stage,
                "message": message,
            }
        )

    def read_content(self, content_id: str) -> ReadContent:
        """Return the one content that there is."""
        if content_id != CSV_ID:
            raise ToolError("There is no such content.")
        return ReadContent(data=self.data, mime_type="text/csv", filename=self.filename)

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> ContentItem:
        """Keep it."""
        self.written.append((data, mime_type, filename))
        return ImageContent(image=MediaUrl(url="/api/content/x"), format="png", content_id="x")

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """Keep what was looked for and return the messages that there are."""
        self.searched.append((tuple(words), limit))
        return self.messages[:limit]
