"""The fixtures of the tests of requests at the edge."""

from tests.live_server import alice, demo, impatience, web

__all__ = ["alice", "demo", "impatience", "web"]
