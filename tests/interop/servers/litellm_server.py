"""LiteLLM's proxy with a model in the same process that repeats: `litellm_server.py PORT`.

Its only key is `sk-parrot`. The model stops where it is asked to stay, until its client leaves.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final

CONFIG: Final = """
model_list:
  - model_name: parrot
    litellm_params: {model: tests/parrot}
litellm_settings: {telemetry: false}
"""

with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
    file.write(CONFIG)
# They are those of the server that calls this one.
for name in ("DATABASE_URL", "REDIS_URL"):
    os.environ.pop(name, None)
os.environ["CONFIG_FILE_PATH"] = file.name
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_MASTER_KEY"] = "sk-parrot"

import litellm  # type: ignore[import-not-found]  # noqa: E402 it reads the environment
import uvicorn  # noqa: E402 as above
from litellm.proxy.proxy_server import (  # type: ignore[import-not-found]  # noqa: E402 as above
    app,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

left: list[str] = []


class Parrot(litellm.CustomLLM):  # type: ignore[misc]  # not in .venv
    """A model that repeats the last message, word by word."""

    async def astreaming(self, *_: Any, messages: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield the words in LiteLLM's own format."""
        content = messages[-1]["content"]
        text = (
            content
            if isinstance(content, str)
            else "".join(part.get("text", "") for part in content)
        )
        for word in text.split():
            yield _chunk(f"{word} ")
        if "stay" in text:
            try:
                await asyncio.sleep(3600)
            finally:
                left.append(text)
        used = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
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


@app.get("/left")  # type: ignore[untyped-decorator]  # as above
def count_left() -> int:
    """Return the number of clients that have left an answer."""
    return len(left)


if __name__ == "__main__":
    litellm.custom_provider_map = [{"provider": "tests", "custom_handler": Parrot()}]
    litellm.utils.custom_llm_setup()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
