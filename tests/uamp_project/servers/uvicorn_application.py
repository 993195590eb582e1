"""The application of `daphne_application`, under uvicorn with the protocols of this project."""

import socket

import uvicorn

from tests import services
from tests.uamp_project.servers.daphne_application import application, say


class Server(uvicorn.Server):
    """Prints its port, as the other server does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        say("port", self.servers[0].sockets[0].getsockname()[1])


if __name__ == "__main__":
    Server(
        uvicorn.Config(
            application,
            port=0,
            http=f"{services.PROTOCOLS}:HttpProtocol",
            ws=f"{services.PROTOCOLS}:WebSocketProtocol",
            lifespan="off",
        )
    ).run()
