"""Probes for proxies and orchestrators: whether the process lives, and whether it is ready.

`/healthz` checks only the process. `/readyz` returns 503 with reasons while the database or the
files cannot be written, migrations or the channel layer are missing, or the process is draining.
Both answer ahead of all other middleware: an orchestrator calls by IP address, with a Host that is
not in ALLOWED_HOSTS, and bypasses the proxy that terminates TLS.
"""

import asyncio
import logging
import math
import os
import tempfile
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from asgiref.sync import async_to_sync, iscoroutinefunction
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import F
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_and_async_middleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError
from redis.asyncio import Redis

from sessions_app import database, lifespan
from uamp_project.monitoring.metrics_endpoint import show_metrics

logger = logging.getLogger(__name__)

PROBE_SECONDS = 3
PROBE_BYTES = 256 * 1024
ANSWER_SECONDS = 1.0


@dataclass(slots=True)
class _Readiness:
    """The last result on one event loop, cached since any client may ask and checks cost writes."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    reasons: list[str] = field(default_factory=list)
    at: float = -math.inf
    is_migrated: bool = False


_parts: Final[dict[str, Callable[[], bool]]] = {}
_states: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Readiness] = (
    weakref.WeakKeyDictionary()
)


@require_safe
@never_cache
async def healthz(_: HttpRequest) -> JsonResponse:
    """Return 200 as long as the event loop runs."""
    return JsonResponse({"status": "alive"})


@require_safe
@never_cache
async def readyz(_: HttpRequest) -> JsonResponse:
    """Return 200, or 503 with `reasons`: `draining`, `database`, `migrations`, `files`, `layer`.

    `peers`: the ports of peers are not open. Results are cached for ANSWER_SECONDS; `draining` and
    `peers` are reported at once.
    """
    loop = asyncio.get_running_loop()
    state = _states.setdefault(loop, _Readiness())
    async with state.lock:
        if loop.time() - state.at >= ANSWER_SECONDS:
            answers = await asyncio.gather(_ask(_database), _ask(_files), _ask(_layer))
            state.reasons, state.at = [reason for reason in answers if reason], loop.time()
    parts = [reason for reason, is_ready in _parts.items() if not is_ready()]
    reasons = [*([] if lifespan.is_ready() else ["draining"]), *parts, *state.reasons]
    if reasons:
        return JsonResponse({"status": "unready", "reasons": reasons}, status=503)
    return JsonResponse({"status": "ready"})


def also_requires(reason: str, is_ready: Callable[[], bool]) -> None:
    """Report this process as unready, with a reason, while another part of it is not ready."""
    _parts[reason] = is_ready


PROBES: Final[dict[str, Callable[[HttpRequest], Awaitable[HttpResponseBase]]]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    # Read from each process, under an address that ALLOWED_HOSTS does not name.
    "/metrics": show_metrics,
}


@sync_and_async_middleware
def probe_middleware(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Answer the probes, and pass on all other requests."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> Any:
            probe = PROBES.get(request.path_info)
            return await (get_response(request) if probe is None else probe(request))

        return answer_async

    def answer(request: HttpRequest) -> Any:
        probe = PROBES.get(request.path_info)
        return get_response(request) if probe is None else async_to_sync(probe)(request)

    return answer


def missing_migrations() -> list[str]:
    """Return the unapplied migrations, as `app.name` (synchronous).

    A squashed migration counts as missing if only some of those that it replaces were applied, a
    state that Django accepts.
    """
    executor = MigrationExecutor(connection)
    loader = executor.loader
    applied = loader.applied_migrations
    plan = executor.migration_plan(loader.graph.leaf_nodes())
    missing = [(migration.app_label, migration.name) for migration, _ in plan]
    missing += [
        key
        for key, migration in loader.replacements.items()
        if key not in applied and any(replaced in applied for replaced in migration.replaces)
    ]
    return [".".join(key) for key in missing]


async def _ask(probe: Callable[[], Awaitable[str]]) -> str:
    """Return a probe's reason, or its name if it fails or hangs."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await probe()
    except (TimeoutError, OSError, DatabaseError, RedisError) as error:
        logger.warning("%s is not ready: %r", probe.__name__, error)
        return probe.__name__.strip("_")


async def _database() -> str:
    # Planning reads every migration file. Applied migrations stay applied while this process runs.
    state = _states[asyncio.get_running_loop()]
    missing = [] if state.is_migrated else await database.run(missing_migrations)
    if missing:
        return "migrations"
    state.is_migrated = True
    await database.run(_write_a_row)
    return ""


async def _files() -> str:
    await database.run(_reach_the_bucket if settings.UAMP_S3_BUCKET else _write_a_file)
    return ""


def _write_a_row() -> None:
    """Update a row that always exists, because a full disk fails writes, not reads."""
    rows = MigrationRecorder.Migration.objects
    rows.filter(pk=rows.values("pk").order_by("-pk")[:1]).update(applied=F("applied"))


def _reach_the_bucket() -> None:
    """Ask for the bucket in which contents are stored; nothing is written to it."""
    storage: Any = default_storage
    storage.probe()


def _write_a_file() -> None:
    """Write a file where contents are stored."""
    folder = Path(settings.MEDIA_ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())


async def _layer() -> str:
    """Send a message through the layer, then close its channel by cancelling a receive.

    If the layer has several servers, one has to answer: each has chats of its own, and
    every process would be unready because of them.
    """
    if settings.REDIS_URL and len(settings.REDIS_LAYER_URLS) > 1:
        return await _layer_servers()
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.send(channel, {"type": "health.probe"})
    await layer.receive(channel)
    leaving = asyncio.ensure_future(layer.receive(channel))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    return ""


async def _layer_servers() -> str:
    """Log the servers of the layer that do not answer; return "layer" if none does."""
    pings = map(_ping, settings.REDIS_LAYER_URLS)
    failures = [
        answer
        for answer in await asyncio.gather(*pings, return_exceptions=True)
        if isinstance(answer, BaseException)
    ]
    if failures:
        count = f"{len(failures)} of {len(settings.REDIS_LAYER_URLS)}"
        logger.warning("%s servers of the channel layer do not answer: %r", count, failures[0])
    return "layer" if len(failures) == len(settings.REDIS_LAYER_URLS) else ""


async def _ping(url: str) -> None:
    async with asyncio.timeout(PROBE_SECONDS / 2), Redis.from_url(url) as client:
        await client.ping()
