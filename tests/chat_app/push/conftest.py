"""The fixtures of these tests: the real server, and a push service on this machine."""

from tests.live_server import alice, bob, demo, impatience, web
from tests.push_service import push_service

__all__ = ["alice", "bob", "demo", "impatience", "push_service", "web"]
