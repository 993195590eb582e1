"""docs/agents.md has every option of an agent, and no other."""

import re
from pathlib import Path

import pytest

from agents_app.models import ModelProvider
from agents_app.providers.options import option_names

PAGE = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
ROWS = re.findall(
    r"^\| `(\w+)` \| (scripted|a model|Realtime|connected|all) \|", PAGE, re.MULTILINE
)


@pytest.mark.parametrize("provider", [*ModelProvider.values, "connected"])
def test_the_page_has_the_options_of_each_provider(provider: str) -> None:
    own_kind = provider if provider in {ModelProvider.SCRIPTED, "connected"} else "a model"
    kinds = {"all", own_kind}
    if provider == ModelProvider.OPENAI_REALTIME:
        kinds.add("Realtime")
    page = [name for name, kind in ROWS if kind in kinds]
    assert sorted(page) == sorted(option_names(provider))
