"""The model options that an asker may set for a served agent (docs/agents.md)."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from uamp.events import InputText
from uamp.types.generation import GenerationOptions
from uap import Agent
from upp import AdjustableModel

logger = logging.getLogger(__name__)


def accepted_options(bot: Agent) -> tuple[str, ...]:
    """Return the names of the options that the model of an agent declares, sorted."""
    if not isinstance(bot.model, AdjustableModel):
        return ()
    declared = bot.model.options(bot.llm.params)
    return tuple(sorted(declared.intersection(GenerationOptions.__struct_fields__)))


def params_for(bot: Agent, event: InputText) -> dict[str, Any]:
    """Return an agent's parameters, overridden by the options in the `context` of an input.

    Options that the agent does not accept, and invalid ones, are ignored.
    """
    own = dict(bot.llm.params)
    requested = (event.context or {}).get("params")
    if not isinstance(bot.model, AdjustableModel) or not isinstance(requested, Mapping):
        return own
    accepted = {name: requested[name] for name in accepted_options(bot) if name in requested}
    try:
        options = msgspec.to_builtins(msgspec.convert(accepted, GenerationOptions))
    except msgspec.ValidationError as error:
        logger.warning("ignored the invalid options of a chat: %s", error)
        return own
    return bot.model.adjusted(own, options)
