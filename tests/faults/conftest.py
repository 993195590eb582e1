"""The fixtures of the faults on sockets."""

from tests.live_server import alice, demo, dial, impatience, web

__all__ = ["alice", "demo", "dial", "impatience", "web"]
