"""The server that proxies stand in front of, and people who use it."""

from tests.live_server import alice, bob, demo, impatience

__all__ = ["alice", "bob", "demo", "impatience"]
