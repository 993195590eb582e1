"""What a proxy or orchestrator asks: does the process live, and should it get traffic.

`/healthz` touches nothing but the process. `/readyz` says 503 and why while the database or the
files take no writes, migrations or the channel layer are missing, and while the process drains.
Both answer before every other middleware: an orchestrator asks by address, with a Host that is not
in ALLOWED_HOSTS, and past the proxy that ends TLS.
"""

import asyncio
import logging
import os
import tempfile
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from asgiref.sync import async_to_sync, iscoroutinefunction
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import F
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_and_async_middleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError

from sessions_app import database, runner

logger = logging.getLogger(__name__)

PROBE_SECONDS = 3
PROBE_BYTES = 256 * 1024
WRITE_SECONDS = 1.0

_Written = dict[Callable[[], None], tuple[asyncio.Lock, float]]
_written: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Written] = (
    weakref.WeakKeyDictionary()
)


@require_safe
@never_cache
async def healthz(_: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the event loop runs."""
    return JsonResponse({"status": "alive"})


@require_safe
@never_cache
async def readyz(_: HttpRequest) -> JsonResponse:
    """Answer 200, or 503 with `reasons`: `draining`, `database`, `migrations`, `files`, `layer`."""
    found = await asyncio.gather(_ask(_database), _ask(_files), _ask(_layer))
    reasons = [reason for reason in ("" if runner.is_ready() else "draining", *found) if reason]
    if reasons:
        return JsonResponse({"status": "unready", "reasons": reasons}, status=503)
    return JsonResponse({"status": "ready"})


PROBES: Final[dict[str, Callable[[HttpRequest], Awaitable[HttpResponseBase]]]] = {
    "/healthz": healthz,
    "/readyz": readyz,
}


@sync_and_async_middleware
def probe_middleware(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Answer the probes, and hand every other request on."""
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
    """Return the migrations that are not applied, as `app.name` (synchronous)."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


async def _ask(probe: Callable[[], Awaitable[str]]) -> str:
    """Return a probe's reason; one that fails or hangs gives its own name."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await probe()
    except (TimeoutError, OSError, DatabaseError, RedisError) as error:
        logger.warning("%s is not ready: %r", probe.__name__, error)
        return probe.__name__.strip("_")


async def _database() -> str:
    if await database.run(missing_migrations):
        return "migrations"
    return await _now_and_then(_write_a_row)


async def _files() -> str:
    return await _now_and_then(_write_a_file)


def _write_a_row() -> None:
    """Write a row that is always there: a full disk fails here, not in reading."""
    rows = MigrationRecorder.Migration.objects
    rows.filter(pk=rows.values("pk").order_by("-pk")[:1]).update(applied=F("applied"))


def _write_a_file() -> None:
    """Write where contents are stored."""
    folder = Path(settings.MEDIA_ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())


async def _now_and_then(write: Callable[[], None]) -> str:
    """Write, unless that succeeded within WRITE_SECONDS: anybody may ask whether this is ready."""
    loop = asyncio.get_running_loop()
    written = _written.setdefault(loop, {})
    lock, at = written.get(write, (asyncio.Lock(), -WRITE_SECONDS))
    written[write] = (lock, at)
    async with lock:
        _, at = written[write]
        if loop.time() - at >= WRITE_SECONDS:
            await database.run(write)
            written[write] = (lock, loop.time())
    return ""


async def _layer() -> str:
    """Send a message round; then give the channel up, which is done by cancelling a receive."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.send(channel, {"type": "health.probe"})
    await layer.receive(channel)
    leaving = asyncio.ensure_future(layer.receive(channel))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    return ""
