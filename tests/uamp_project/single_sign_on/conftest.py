"""The fixtures of a running server."""

from tests.live_server import demo, impatience

__all__ = ["demo", "impatience"]
