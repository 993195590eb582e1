"""The fixtures of the tests on sockets."""

from tests.live_server import alice, bob, demo, dial, impatience, web

__all__ = ["alice", "bob", "demo", "dial", "impatience", "web"]
