"""The fixtures of the tests on sockets."""

from tests.house import alice, bob, demo, dial, mallory, quick_end, web

__all__ = ["alice", "bob", "demo", "dial", "mallory", "quick_end", "web"]
