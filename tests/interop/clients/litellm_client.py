"""litellm, which sends to any server that speaks like OpenAI's."""

import json
import os
import sys
from typing import Any

# It would fetch a list of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # type: ignore[import-not-found]  # not in .venv

ORIGIN, KEY = sys.argv[1:3]
HELLO = [{"role": "user", "content": "Hello there"}]


def ask(model: str, **options: Any) -> Any:
    """Ask an agent."""
    return litellm.completion(
        model=f"openai/{model}", api_base=f"{ORIGIN}/v1", api_key=KEY, messages=HELLO, **options
    )


def main() -> dict[str, Any]:
    """Ask whole, streamed, and for an agent that is not there."""
    pieces = [chunk.choices[0].delta.content or "" for chunk in ask("echo", stream=True)]
    try:
        ask("missing")
        missing = ""
    except litellm.exceptions.NotFoundError as error:
        missing = type(error).__name__
    thought = ask("thinker").choices[0].message
    return {
        "whole": ask("echo").choices[0].message.content,
        "stream": "".join(pieces),
        "missing": missing,
        "thought": bool(thought.reasoning_content),
    }


print(json.dumps(main()))  # noqa: T201 its result
