"""The fixtures of the tests on sockets."""

from tests.live_server import alice, bob, demo, impatience, mallory, web

__all__ = ["alice", "bob", "demo", "impatience", "mallory", "web"]
