"""Facts for other apps about how a conversation is sent to a model.

The way itself is `uap.uamp_adapter.history`; of the apps, `agents_app` alone imports `uap`.
"""

from uap.uamp_adapter.history import RememberedMessage
from uap.uamp_adapter.media import DOCUMENT_CHARS

__all__ = ["DOCUMENT_CHARS", "RememberedMessage"]
