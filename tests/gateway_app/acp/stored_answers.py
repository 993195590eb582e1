"""The answers in the log, with which those that clients received are compared."""

from chat_app.models import ChatEvent


def stored_signatures() -> list[str]:
    """Return the signatures of all answers, the oldest first."""
    ends = ChatEvent.objects.filter(type="response.done").order_by("created_at")
    return [end.payload["signature"] for end in ends]
