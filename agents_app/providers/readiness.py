"""Check from an agent's row whether requests to its model could be sent, without sending any.

The same rules apply when the agent is asked (`clients`, `addresses`). A host name is not looked up
here, so one that leads to a private address is refused only then.
"""

import os
from collections.abc import Mapping
from typing import Any

from agents_app.outbound.rules import Unreachable, is_public
from agents_app.providers.addresses import VENDOR_HOSTS, host_of, may_take, target_of
from agents_app.providers.clients import model_address, operators_key

_REMEDY = "An operator can allow it with UAMP_MODEL_ALLOW_HOSTS."


def problem_of_address(provider: str, options: Mapping[str, Any]) -> str | None:
    """Return why a model's address is refused, or its named key there; None if neither is."""
    base_url, variable = options.get("base_url"), options.get("api_key_env")
    if base_url is not None:
        try:
            target = target_of(base_url)
        except Unreachable as error:
            return f"Requests to this address are refused: {error.reason}. {_REMEDY}"
        if not target.is_allowed and _is_private_ip(target.host):
            return f"Requests to this address are refused: {target.host} is not public. {_REMEDY}"
    address = model_address(provider, base_url)
    if variable and not may_take(variable, address):
        return f"{variable} may not be sent to {host_of(address)}. {_REMEDY}"
    return None


def missing_key(provider: str, options: Mapping[str, Any], *, is_stored: bool) -> str | None:
    """Return the name of the key that a model lacks, for operators; None if it lacks none.

    `is_stored`: the row has a key for the address. Vendors need a key; another server may not.
    """
    variable = options.get("api_key_env")
    if variable:
        is_set = bool(os.environ.get(variable))
        return None if is_set else f"the environment variable {variable} is not set"
    base_url = options.get("base_url")
    host = host_of(model_address(provider, base_url))
    has_key = is_stored or (base_url is None and operators_key(provider) is not None)
    if has_key or host not in VENDOR_HOSTS.values():
        return None
    return f"{host} needs a key, but none is set"


def _is_private_ip(host: str) -> bool:
    try:
        return not is_public(host)
    except ValueError:
        return False  # it is a name
