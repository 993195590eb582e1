"""A question in a signed envelope over each transport, next to a turn of UAMP.

A question is one `ask` with 20 words, answered by the scripted agent, and its deltas to `done`,
which has the answer signed. N connections each ask again after an answer, in one conversation each.
`uamp` is the same agent over UAMP's WebSocket. `http1`, `websocket` and `grpc` are one uvicorn
process on loopback; `http2` and `http3` are `manage.py peers` with TLS 1.3, so they include the
encryption. Over HTTP a question is two requests.

CPU covers all threads of the server and of its PostgreSQL backends, per question. Before that, in
this process: reading and verifying an envelope.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks import results, servers, turn_runs
from benchmarks.clients.envelopes import (
    ECHO,
    HOST,
    PEER,
    TRANSPORTS,
    AskingPeer,
    ListeningPlace,
    open_line,
    run_line,
)
from benchmarks.rounds import measure, ratio, spread
from benchmarks.turn_runs import TEXT, TurnTarget
from federation_app.envelope.members.reading import read_envelope
from federation_app.envelope.members.verifying import verify_envelope
from federation_app.envelope.signatures.keys import EnvelopeKey
from tests.federation_app.local_certificate import certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.results import Results

UAMP: Final = "uamp"
WITH_TLS: Final = frozenset({"http2", "http3"})
SETTINGS: Final = {
    "UAMP_FEDERATION_HOST": HOST,
    "UAMP_ENVELOPES_PER_MINUTE": "1000000000",
    "UAMP_ENVELOPE_STREAMS": "100000",
    "UAMP_ENVELOPE_STALL_SECONDS": "3600",
    "UAMP_CONNECTIONS_PER_ADDRESS": "100000",
    "UAMP_SIGNATURE_ALGORITHM": "EdDSA",
}
ENTER: Final = """
import json
from django.contrib.auth.models import User
from federation_app.peers import registry
registry.enter_peer({did!r}, json.loads({jwks!r}), user=User.objects.get(username="bench"))
"""
SIGNED: Final = 2000
HEAD: Final = f"{'':26}{'CPU ms':>8}{'per second':>12}"


@dataclass(frozen=True, kw_only=True)
class Questions:
    """CPU milliseconds per question, and questions answered per second."""

    cpu: float
    per_second: float


@dataclass(frozen=True, kw_only=True)
class MeasuredTarget:
    """A server to ask, and the gauge of its CPU."""

    place: ListeningPlace
    gauge: TurnTarget

    def cpu(self) -> float:
        """Return the CPU seconds of the server and its database so far."""
        web, _, database = self.gauge.cpu()
        return web + database


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns, and print their ratios."""
    parser = results.parser("envelopes", __doc__)
    parser.add_argument("--connections", type=int, default=8, metavar="N", help="of a cell (8)")
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=TRANSPORTS)
    options = parser.parse_args(arguments)
    peer = AskingPeer(TEXT)
    with results.Results("envelopes", options.results) as report:
        _show_signatures(report)
        for database in results.databases_of(options):
            with ExitStack() as stack:
                settings = results.settings_of(options)
                plain = plain_server(database, settings, peer, stack)
                targets = {
                    transport: plain
                    for transport in options.transports
                    if transport not in WITH_TLS
                }
                if set(options.transports) & WITH_TLS:
                    secure = _server_with_tls(database, settings, peer, stack)
                    targets |= {
                        transport: secure
                        for transport in options.transports
                        if transport in WITH_TLS
                    }
                count, seconds = options.connections, options.seconds
                cells: dict[str, Callable[[], Questions]] = {
                    name: partial(_ask, name, target, peer, count, seconds)
                    for name, target in targets.items()
                }
                cells[UAMP] = partial(_turns, plain, count, seconds)
                _show(database, measure(cells, options.rounds), report)


def plain_server(
    database: str, settings: Mapping[str, str], peer: AskingPeer, stack: ExitStack
) -> MeasuredTarget:
    """Serve with uvicorn without TLS, and with gRPC; the peer is known."""
    rpc_port = servers.free_port()
    address = {"UAMP_GRPC_ADDRESS": f"127.0.0.1:{rpc_port}"}
    data = stack.enter_context(
        servers.prepared(database, settings={**SETTINGS, **address, **settings})
    )
    _enter(data, peer)
    server = stack.enter_context(servers.serving(servers.of_ours(data)))
    place = ListeningPlace(port=server.port, rpc_port=rpc_port)
    return MeasuredTarget(place=place, gauge=turn_runs.ours(data, server))


def _server_with_tls(
    database: str, settings: Mapping[str, str], peer: AskingPeer, stack: ExitStack
) -> MeasuredTarget:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="uamp-bench-tls-")))
    chain, key = certificate(folder)
    data = stack.enter_context(servers.prepared(database, settings={**SETTINGS, **settings}))
    _enter(data, peer)
    paths = ["--certificate", str(chain), "--key", str(key)]
    program = servers.ServerProgram(
        arguments=["manage.py", "peers", "--host", "127.0.0.1", *paths, "--port"],
        environment=data.environment,
    )
    server = stack.enter_context(servers.serving(program))
    place = ListeningPlace(port=server.port, certificate=chain)
    return MeasuredTarget(place=place, gauge=turn_runs.ours(data, server))


def _enter(data: servers.Data, peer: AskingPeer) -> None:
    """Trust the peer's key."""
    jwks = json.dumps({"keys": [peer.key.public().jwk()]})
    code = ENTER.format(did=PEER, jwks=jwks)
    subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "manage.py", "shell", "-v0", "-c", code],
        cwd=servers.ROOT,
        env=dict(data.environment),
        check=True,
    )


def _ask(
    name: str, target: MeasuredTarget, peer: AskingPeer, count: int, seconds: float
) -> Questions:
    return asyncio.run(_question_rate(name, target, peer, count, seconds))


async def _question_rate(
    name: str, target: MeasuredTarget, peer: AskingPeer, count: int, seconds: float
) -> Questions:
    async with AsyncExitStack() as stack:
        lines = [await open_line(name, target.place, peer, stack) for _ in range(count)]
        begins = asyncio.Barrier(count + 1)
        tasks = [asyncio.ensure_future(run_line(line, peer, begins, seconds)) for line in lines]
        ready = asyncio.ensure_future(begins.wait())
        # A line that fails never comes to the barrier.
        await asyncio.wait([ready, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        await ready
        before, began = target.cpu(), time.perf_counter()
        questions = sum(await asyncio.gather(*tasks))
        took, used = time.perf_counter() - began, target.cpu() - before
    return Questions(cpu=used * 1000 / max(1, questions), per_second=questions / took)


def _turns(target: MeasuredTarget, count: int, seconds: float) -> Questions:
    turns = turn_runs.run_turns(target.gauge, count, seconds)
    return Questions(cpu=turns.cpu, per_second=turns.per_second)


def _show(database: str, runs: Mapping[str, Sequence[Questions]], report: Results) -> None:
    print(HEAD)
    for name, cell_runs in runs.items():
        cpu, rate = (
            spread([getattr(run, of) for run in cell_runs]) for of in ("cpu", "per_second")
        )
        print(f"{f'{database}, {name}':26}{cpu.median:>8.2f}{rate.median:>12.1f}")
        report.add(f"envelopes.{database}.{name}.per_second", rate, "a second")
    turns = [run.cpu for run in runs[UAMP]]
    for name, cell_runs in runs.items():
        if name != UAMP:
            figure = ratio([run.cpu for run in cell_runs], turns)
            print(f"CPU of a question, {database}, {name} / {UAMP}: {figure}", flush=True)
            report.add(f"envelopes.{database}.{name}.cpu", figure)


def _show_signatures(report: Results) -> None:
    for name, private in (
        ("EdDSA", Ed25519PrivateKey.generate()),
        ("ES256", generate_private_key(SECP256R1())),
    ):
        peer = AskingPeer(TEXT, EnvelopeKey(f"{PEER}#1", private))
        raws = [json.dumps(peer.ask()).encode() for _ in range(SIGNED)]
        keys, now = [peer.key.public()], datetime.now(UTC)
        began = time.process_time()
        envelopes = [read_envelope(raw) for raw in raws]
        read = (time.process_time() - began) * 1e6 / SIGNED
        began = time.process_time()
        for envelope in envelopes:
            verify_envelope(
                envelope, keys=keys, receivers={ECHO}, now=now, seconds=3600, accepts_naive=False
            )
        verified = (time.process_time() - began) * 1e6 / SIGNED
        print(f"{name}: an envelope is read in {read:.0f} and verified in {verified:.0f} µs of CPU")
        report.add(f"envelopes.{name}.read", spread([read]), "µs")
        report.add(f"envelopes.{name}.verified", spread([verified]), "µs")
