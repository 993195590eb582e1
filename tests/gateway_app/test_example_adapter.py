"""The adapter of docs/adapters.md, as it stands there, on the real server."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from django.test import override_settings

from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

pytestmark = pytest.mark.any_database

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
NAME = "adapter_of_the_page"


@pytest.fixture
def example(web: httpx.Client) -> Iterator[httpx.Client]:
    """Give a client of a server that has the adapter of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("## Add a protocol")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(code[1], str(PAGE), "exec"), vars(module))  # noqa: S102 our own page
    with override_settings(ROOT_URLCONF=NAME):
        yield web
    del sys.modules[NAME]


def test_the_adapter_of_the_page_answers_and_refuses(example: httpx.Client) -> None:
    answer = example.post("/api/generate", json={"model": "echo", "prompt": "Hello there"})
    lines = [json.loads(line) for line in answer.text.splitlines()]

    assert "".join(line["response"] for line in lines) == "Hello there"
    assert lines[-1]["done"]
    failed = example.post("/api/generate", json={"model": "fail", "prompt": "Hello"})
    assert "error" in json.loads(failed.text.splitlines()[-1])
    missing = example.post("/api/generate", json={"model": "missing", "prompt": "Hello"})
    assert (missing.status_code, list(missing.json())) == (404, ["error"])
    priced = example.post("/api/generate", json={"model": "paid-echo", "prompt": "Hello"})
    assert (priced.status_code, "accepts" in priced.json()) == (402, True)
    assert example.post("/api/generate", json={"model": 1}).status_code == 400
    assert Response.objects.count() == 2
