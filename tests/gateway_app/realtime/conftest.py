"""Sockets for these tests, and a speech vendor."""

from tests.gateway_app.realtime.client import realtime
from tests.gateway_app.realtime.speech import vendor

__all__ = ["realtime", "vendor"]
