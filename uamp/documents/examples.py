"""One example of each event, for the reference (UAMP §5 to §7, §11).

Every wire type has exactly one example, and every example is valid on the wire.
"""

from uamp import events as e
from uamp.documents.chat_examples import CHAT_EXAMPLES
from uamp.documents.client_examples import CLIENT_EXAMPLES
from uamp.documents.server_examples import SERVER_EXAMPLES
from uamp.events.base import Event, type_of

_SYSTEM: tuple[Event, ...] = (
    e.SystemError(
        event_id="evt_900",
        error=e.ErrorDetail(code="internal_error", message="The handler failed."),
    ),
    e.SystemStop(event_id="evt_901", reason="shutdown"),
    e.SystemCancel(event_id="evt_902", reason="shutdown"),
    e.SystemPing(event_id="evt_903"),
    e.SystemPong(event_id="evt_904"),
    e.SystemUnroutable(event_id="evt_905", message_type="analyze_emotion"),
)

EXAMPLES: dict[str, Event] = {
    type_of(event): event
    for event in (*CLIENT_EXAMPLES, *SERVER_EXAMPLES, *CHAT_EXAMPLES, *_SYSTEM)
}
