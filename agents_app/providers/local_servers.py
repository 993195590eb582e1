"""Finds the model servers that run on this machine."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import httpx

from agents_app.providers.model_choice import models_in

FIND_SECONDS: Final = 1.0
ANSWER_BYTES: Final = 1024 * 1024
# Both speak OpenAI's API. UAMP_MODEL_ALLOW_HOSTS names their ports by default.
_SERVERS: Final = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
)


@dataclass(frozen=True, kw_only=True)
class ModelServer:
    """A model server on this machine, and its models that chat."""

    name: str
    base_url: str
    models: tuple[str, ...]


def find_servers() -> list[ModelServer]:
    """Return the servers that answer and have models; blocks for about FIND_SECONDS."""
    with ThreadPoolExecutor(len(_SERVERS)) as threads:
        servers = threads.map(_ask, *zip(*_SERVERS, strict=True))
        return [server for server in servers if server is not None]


def _ask(name: str, base_url: str) -> ModelServer | None:
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
    return ModelServer(name=name, base_url=base_url, models=models) if models else None
