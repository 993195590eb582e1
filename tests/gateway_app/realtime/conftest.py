"""The sockets of these tests, and a vendor of speech."""

from tests.gateway_app.realtime.client import realtime
from tests.gateway_app.realtime.speech import vendor

__all__ = ["realtime", "vendor"]
