"""The models that a provider lists, as suggestions for the form of an agent.

The request follows the rules for the requests of agents: the same addresses, the same key, and a
connection only to an address that was checked. A list is kept for a while, and so is a failure, so
that a form that is edited asks a provider once.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from agents_app.outbound.guard import TooLarge, Unreachable, fetch
from agents_app.providers.addresses import listing_policy
from agents_app.providers.clients import access_of, operators_key
from agents_app.providers.model_choice import LIST_SECONDS, listing_request, models_listed
from upp import UPPError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_app.providers.clients import ModelRow

logger = logging.getLogger(__name__)

LIST_BYTES: Final = 2 * 1024 * 1024
MAX_MODELS: Final = 300
MAX_CHARS: Final = 200
KEPT_SECONDS: Final = 600
FAILED_SECONDS: Final = 30
_OK: Final = 200


def suggested_models(row: ModelRow, admit: Callable[[], bool]) -> tuple[str, ...]:
    """Return the models of a row's provider, at most MAX_MODELS; () if it lists none.

    `admit` is called before a provider is asked, and may refuse. Blocks for LIST_SECONDS at most.
    """
    try:
        access = access_of(row)
    except UPPError:
        return ()  # the form says why when it is saved
    key = access.api_key
    if key is None and access.target is None:
        key = operators_key(row.provider)
    request = listing_request(row.provider, access.address, key)
    if request is None:
        return ()
    url, headers = request
    # Keys may list different models, and a key itself never stands in the cache.
    digest = hashlib.sha256("\0".join((row.provider, url, key or "")).encode()).hexdigest()
    models: tuple[str, ...] | None = cache.get(f"models:{digest}")
    if models is None:
        if not admit():
            return ()
        models = _listed(row.provider, url, headers)
        cache.set(f"models:{digest}", models, KEPT_SECONDS if models else FAILED_SECONDS)
    return models


def _listed(provider: str, url: str, headers: dict[str, str]) -> tuple[str, ...]:
    try:
        answer = fetch(url, listing_policy(LIST_SECONDS, LIST_BYTES), headers=headers)
    except (Unreachable, TooLarge) as error:
        logger.info("the models of a provider were not listed: %s", error)
        return ()
    if answer.status != _OK:
        return ()
    models = models_listed(provider, answer.data)
    return tuple(sorted({name for name in models if 0 < len(name) <= MAX_CHARS})[:MAX_MODELS])
