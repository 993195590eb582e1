"""Loading of agents named on the command line as `module:attribute`."""

import importlib
import sys
from pathlib import Path
from typing import Any

from uap import Agent


class AgentNotLoaded(Exception):
    """The object cannot be loaded or is not an agent; the message is for its author."""


def load(place: str) -> Agent:
    """Load an agent: an Agent in a module, or a function without arguments that returns one.

    The working directory is searched for the module first. Raises AgentNotLoaded; an error of the
    module or the function is its cause.
    """
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute:
        raise AgentNotLoaded(f"{place!r} is not of the form module:agent, such as my_agent:agent.")
    value = _import(module_name)
    for name in attribute.split("."):
        if not hasattr(value, name):
            raise AgentNotLoaded(f"{module_name} has no {attribute!r}.")
        value = getattr(value, name)
    if not isinstance(value, Agent) and callable(value):
        try:
            value = value()
        except Exception as error:
            raise AgentNotLoaded(f"{place}() did not return an agent: {error!r}") from error
    if not isinstance(value, Agent):
        raise AgentNotLoaded(
            f"{place} is a {type(value).__name__}; create an agent with uap.agent()."
        )
    return value


def _import(module_name: str) -> Any:
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module_name}.".startswith(f"{missing.name}."):
            raise AgentNotLoaded(
                f"There is no module {missing.name!r} in {directory}."
            ) from missing
        raise AgentNotLoaded(
            f"{module_name} needs {missing.name}, which is not installed."
        ) from missing
    except Exception as error:
        raise AgentNotLoaded(f"{module_name} cannot be imported: {error!r}") from error


def default_name(place: str) -> str:
    """Return the default name of an agent: that of its attribute."""
    return place.rpartition(":")[2].rpartition(".")[2].replace("_", "-").lower()
