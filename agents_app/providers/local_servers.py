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
    """Return the servers that answer and have models; blocks for about FIND_SECONDS."""
    places = _places()
    if not places:
        return []
    with ThreadPoolExecutor(len(places)) as threads:
        return [server for server in threads.map(_ask, places) if server is not None]


def _places() -> list[str]:
    """Return `host:port` of each place on this machine where a model server may be."""
    places = (place.lower().rpartition(":") for place in settings.UAMP_MODEL_ALLOW_HOSTS)
    return [f"{host}:{port}" for host, _, port in places if host in _HOSTS and port in _PORTS]


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
