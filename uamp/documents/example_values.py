"""Ids, an image, usage and a tool shared by several examples."""

from uamp.events.members import Actor, ChatMember
from uamp.types.content import MediaUrl, TextContent
from uamp.types.session import (
    Cost,
    FunctionDefinition,
    ToolDefinition,
    UsageStats,
)

SESSION = "sess_abc123"
CHAT = "chat_abc"
RESPONSE = "resp_abc"
CALL = "call_abc"
TIME = 1704067200000
PICTURE = MediaUrl(url="/api/content/550e8400-e29b-41d4-a716-446655440000")
PICTURE_ID = "550e8400-e29b-41d4-a716-446655440000"
USAGE = UsageStats(
    input_tokens=25,
    output_tokens=12,
    total_tokens=37,
    cost=Cost(input_cost=0.000025, output_cost=0.000036, total_cost=0.000061, currency="USD"),
)
SEARCH = ToolDefinition(
    function=FunctionDefinition(
        name="search",
        description="Search the web",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )
)
ANSWER = TextContent(text="The weather in Paris is 22°C and sunny.")
ALICE = Actor(id="1", name="alice")
BOB = ChatMember(kind="user", id="2", name="bob", participant_id=7, role="member")
