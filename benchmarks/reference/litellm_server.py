"""LiteLLM's proxy with a stub model: `litellm_server.py PORT`.

Runs in the virtual environment of `benchmarks.reference.installation` and imports nothing of this
repository. Its only key is LITELLM_MASTER_KEY; it has no database, logs or callbacks. The model `m`
is a provider in the same process that yields 20 words without pauses.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

CONFIG: Final = """
model_list:
  - model_name: m
    litellm_params: {model: bench/words}
litellm_settings: {telemetry: false}
"""

with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
    file.write(CONFIG)
os.environ["CONFIG_FILE_PATH"] = file.name
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_LOG"] = "ERROR"

import litellm  # type: ignore[import-not-found]  # noqa: E402 it reads the environment
import uvicorn  # noqa: E402 as above
from litellm.proxy.proxy_server import (  # type: ignore[import-not-found]  # noqa: E402 as above
    app,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WORDS = [f"word{number:02} " for number in range(1, 21)]


class StubModel(litellm.CustomLLM):  # type: ignore[misc]  # not in .venv
    """A provider that yields the words."""

    async def astreaming(self, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield the words in LiteLLM's own format."""
        for word in WORDS:
            yield _chunk(word)
        used = {"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40}
        yield {**_chunk(""), "is_finished": True, "finish_reason": "stop", "usage": used}


def _chunk(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "is_finished": False,
        "finish_reason": None,
        "usage": None,
        "index": 0,
        "tool_use": None,
    }


def main() -> None:
    """Serve until SIGTERM."""
    litellm.custom_provider_map = [{"provider": "bench", "custom_handler": StubModel()}]
    litellm.utils.custom_llm_setup()
    logging.disable(logging.CRITICAL)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", backlog=4096
    )
    try:
        uvicorn.Server(config).run()
    finally:
        Path(file.name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
