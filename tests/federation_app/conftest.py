"""The fixtures of peers and of the running server."""

from tests.federation_app.foreign_guests import tell
from tests.federation_app.foreign_server import sage
from tests.federation_app.hypercorn_server import hypercorn
from tests.federation_app.peer import federated, peer, rpc_place
from tests.federation_app.two_servers import other
from tests.live_server import *  # noqa: F403 the fixtures of a running server

__all__ = ["federated", "hypercorn", "other", "peer", "rpc_place", "sage", "tell"]
