"""The fixtures of the faults on sockets."""

from tests.house import alice, demo, dial, impatience, web

__all__ = ["alice", "demo", "dial", "impatience", "web"]
