"""Finds the model servers on this machine among the hosts of UAMP_MODEL_ALLOW_HOSTS."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import httpx
from django.conf import settings

from agents_app.providers.model_choice import models_in

FIND_SECONDS: Final = 1.0
ANSWER_BYTES: Final = 1024 * 1024
# Both speak OpenAI's API.
_PORTS: Final = {"11434": "Ollama", "1234": "LM Studio"}
# The last is the machine that a container runs on.
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "host.docker.internal"})


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """A model server on this machine, and its models that chat."""

    name: str
    base_url: str
    models: tuple[str, ...]


def find_servers() -> list[ModelServer]:
    """Return the servers that answer and have models, each once.

    Blocks for about FIND_SECONDS, and as long as it takes to resolve the names of hosts.
    """
    places = _places()
    if not places:
        return []
    with ThreadPoolExecutor(len(places)) as threads:
        servers = [server for server in threads.map(_ask, places) if server is not None]
    # One server may answer at several names of this machine.
    unique: dict[tuple[str, tuple[str, ...]], ModelServer] = {}
    for server in servers:
        unique.setdefault((server.name, server.models), server)
    return list(unique.values())


def _places() -> list[str]:
    """Return `host:port` of each place on this machine where a model server may be."""
    places = (place.lower().rpartition(":") for place in settings.UAMP_MODEL_ALLOW_HOSTS)
    allowed = (
        f"{host}:{known}"
        for host, _, port in places
        for known in _PORTS
        if host in _HOSTS and port in (known, "*")
    )
    return list(dict.fromkeys(allowed))


def _ask(place: str) -> ModelServer | None:
    base_url = f"http://{place}/v1"
    try:
        with httpx.stream(
            "GET", f"{base_url}/models", timeout=FIND_SECONDS, trust_env=False
        ) as answer:
            answer.raise_for_status()
            body = b""
            for part in answer.iter_bytes():
                body += part
                if len(body) > ANSWER_BYTES:
                    return None
    except httpx.HTTPError:
        return None
    models = models_in(body)
    name = _PORTS[place.rpartition(":")[2]]
    return ModelServer(name=name, base_url=base_url, models=models) if models else None
