"""Facts about how a conversation is sent to a model, for other apps.

The conversion itself is in `uap.uamp_adapter.history`; only `agents_app` may import `uap`.
"""

from uap.uamp_adapter.history import RememberedMessage
from uap.uamp_adapter.media import DOCUMENT_CHARS, document_text

__all__ = ["DOCUMENT_CHARS", "RememberedMessage", "document_text"]
