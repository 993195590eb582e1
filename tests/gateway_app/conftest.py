"""The fixtures of the tests on foreign protocols."""

from tests.live_server import alice, bob, brisk, demo, dial, impatience, mallory, web

__all__ = ["alice", "bob", "brisk", "demo", "dial", "impatience", "mallory", "web"]
