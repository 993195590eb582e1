"""The end of a server: its signals, and an application that goes on."""

import signal
import socket
import subprocess
from collections.abc import Callable

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.uamp_project.servers.served import Served


def test_sigterm_drains_then_closes_with_1012(serve: Callable[..., Served]) -> None:
    served = serve(drain=0.5)
    with connect(f"ws://127.0.0.1:{served.port}/echo") as ws:
        ws.send("before")
        assert ws.recv(timeout=60) == "before"
        served.process.send_signal(signal.SIGTERM)
        served.line("draining")
        # While it drains, open sockets work and new ones are refused.
        ws.send("meanwhile")
        assert ws.recv(timeout=60) == "meanwhile"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", served.port), timeout=5)
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    assert [served.line(word) for word in ("drained", "closed 1012", "finished", "ended")]
    assert served.process.wait(timeout=120) == 0


def test_a_second_signal_ends_the_draining(serve: Callable[..., Served]) -> None:
    served = serve(drain=600)
    served.process.send_signal(signal.SIGINT)
    served.line("draining")
    # At once it is taken for the same wish; after a second it is impatience.
    served.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        served.process.wait(timeout=1.5)
    served.process.send_signal(signal.SIGINT)

    assert served.process.wait(timeout=120) == 0


def test_an_application_that_ignores_its_cancellation_is_abandoned(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    with connect(f"ws://127.0.0.1:{served.port}/stubborn"):
        served.process.send_signal(signal.SIGTERM)
        assert [served.line(word) for word in ("cancelled", "finished", "ended")]
    assert served.process.wait(timeout=120) == 0


def test_a_repeated_signal_stops_once(serve: Callable[..., Served]) -> None:
    served = serve(drain=1)
    with connect(f"ws://127.0.0.1:{served.port}/echo") as ws:
        ws.send("before")
        assert ws.recv(timeout=60) == "before"
        # To the process group of `make run` it comes twice: make passes it on to its child.
        served.process.send_signal(signal.SIGTERM)
        served.line("draining")
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    # Drained is what it says when it was not cut short.
    assert [served.line(word) for word in ("drained", "ended")]
