"""The fixtures of these tests: the real server, a worker, and a receiver on this machine."""

from tests.live_server import alice, bob, demo, dial, impatience, mallory, web
from tests.webhook_receiver import receiver

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory", "receiver", "web"]
