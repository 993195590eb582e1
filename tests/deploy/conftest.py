"""The server that proxies stand in front of, and people and peers who use it."""

from tests.federation_app.peer import federated, peer, rpc_place
from tests.live_server import alice, bob, demo, impatience, web

__all__ = ["alice", "bob", "demo", "federated", "impatience", "peer", "rpc_place", "web"]
