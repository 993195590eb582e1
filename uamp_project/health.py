"""What a proxy or orchestrator asks: does the process live, and should it get traffic (notes G12).

`/healthz` touches nothing but the process. `/readyz` says 503 and why while the database, its
migrations or the channel layer are missing, and while the process drains.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from channels.layers import get_channel_layer
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError

from sessions_app import database, runner

logger = logging.getLogger(__name__)

PROBE_SECONDS = 3


@require_safe
@never_cache
async def healthz(_: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the event loop runs."""
    return JsonResponse({"status": "alive"})


@require_safe
@never_cache
async def readyz(_: HttpRequest) -> JsonResponse:
    """Answer 200, or 503 with `reasons`: of `draining`, `database`, `migrations`, `layer`."""
    found = await asyncio.gather(_ask(_database), _ask(_layer))
    reasons = [reason for reason in ("" if runner.is_ready() else "draining", *found) if reason]
    if reasons:
        return JsonResponse({"status": "unready", "reasons": reasons}, status=503)
    return JsonResponse({"status": "ready"})


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
    return "migrations" if await database.run(missing_migrations) else ""


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
