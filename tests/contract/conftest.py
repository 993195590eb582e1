"""The fixtures of these tests: the real server with its demo agents."""

from tests.live_server import alice, bob, demo, dial, impatience, mallory, web

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory", "web"]
