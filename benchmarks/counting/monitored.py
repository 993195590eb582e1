"""`monitored.py ORDER`: free turns in one process, with and without its metrics and spans.

ORDER is JSON. Each round runs the variants in another order and counts their turns, each with the
export of its spans. The CPU time of the process is counted, or its instructions under callgrind
(`switch`). Prints one line of JSON per round, of seconds by variant.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import random
import sys
import time
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, TraceIdRatioBased
from prometheus_client import Counter, Gauge, Histogram

from telemetry import spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The program beside this one, which sets Django up.
program: Any = import_module("program")

USUAL_RATE: Final = 0.05
_METHODS: Final = (
    *((kind, "labels") for kind in (Counter, Gauge, Histogram)),
    (Counter, "inc"), (Gauge, "inc"), (Gauge, "dec"), (Gauge, "set"), (Histogram, "observe"),
)  # fmt: skip


@contextmanager
def without_metrics() -> Iterator[None]:
    """Let nothing be counted within the block."""
    originals = [(kind, name, kind.__dict__.get(name)) for kind, name in _METHODS]
    for kind, name in _METHODS:
        setattr(kind, name, _same if name == "labels" else _nothing)
    try:
        yield
    finally:
        for kind, name, method in originals:
            if method is None:
                delattr(kind, name)
            else:
                setattr(kind, name, method)


def _same(metric: object, *_: object, **__: object) -> object:
    return metric


def _nothing(*_: object, **__: object) -> None:
    """Count nothing."""


def traced(rate: float, sink: str) -> TracerProvider:
    """Return a provider that exports a share of the traces to an address."""
    sampler = ALWAYS_ON if rate == 1 else ParentBased(TraceIdRatioBased(rate))
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=sink)))
    return provider


async def main(order: dict[str, Any]) -> None:
    """Warm up, then count each variant in each round."""
    switch = ctypes.CDLL(order["switch"]) if order["switch"] else None
    program.leave_out_the_clock()
    await program.server.startup()
    providers = {
        "bare": None,
        "metrics": None,
        "sampled": traced(USUAL_RATE, order["sink"]),
        "traced": traced(1, order["sink"]),
    }
    socket = program.CountedSocket(order["token"])
    await socket.open(order["agent"])

    async def turns(variant: str, amount: int) -> None:
        provider = spans._provider = providers[variant]  # noqa: SLF001 each span looks it up
        await program.run_turns([socket], order["text"], amount)
        if provider is not None:
            provider.force_flush()

    async def counted(variant: str) -> float:
        if switch is not None:
            switch.begin_counting()
        began = time.process_time()
        await turns(variant, order["turns"])
        took = time.process_time() - began
        if switch is not None:
            switch.end_counting(variant.encode())
        return took / int(order["turns"])

    names = list(providers)
    for variant in names:
        await _in(variant, partial(turns, variant, order["warm"]))
    for _ in range(order["rounds"]):
        random.shuffle(names)
        seconds = {variant: await _in(variant, partial(counted, variant)) for variant in names}
        print(json.dumps(seconds), flush=True)
    await socket.close()
    for provider in providers.values():
        if provider is not None:
            provider.shutdown()
    await program.server.shutdown()


async def _in(variant: str, call: Callable[[], Any]) -> Any:
    if variant != "bare":
        return await call()
    with without_metrics():
        return await call()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
