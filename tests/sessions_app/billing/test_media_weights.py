"""The reservation for a picture covers the tokens that the agent's model is known to count."""

from __future__ import annotations

import pytest

import uamp
from agents_app.models import Agent
from agents_app.selectors import get_spec
from chat_app.contents.extents import Extent
from sessions_app.billing.media_weights import max_rates, tokens_of_media

pytestmark = pytest.mark.django_db


def _gpt_4o_mini(width: int, height: int) -> int:
    """Return 2,833 and 5,667 for each tile of 512, once 768 pixels fit the shorter side."""
    scale = min(1, 2_048 / max(width, height))
    scale = min(scale, 768 / (min(width, height)))
    across, down = (-(-int(side * scale) // 512) for side in (width, height))
    return 2_833 + 5_667 * across * down


@pytest.mark.parametrize(
    ("provider", "model", "tiles", "counted"),
    [
        ("openai_compat", "gpt-4o-mini", 1, _gpt_4o_mini(128, 64)),
        ("openai_compat", "gpt-4o-mini-2024-07-18", 1, _gpt_4o_mini(768, 768)),
        ("openai_compat", "gpt-4o-mini", 3, _gpt_4o_mini(768, 2_048)),
        ("openai_compat", "gpt-4o-mini", 9, _gpt_4o_mini(2_048, 2_048)),
        ("openai_compat", "meta-llama/Llama-3.2-11B-Vision", 1, 6_404),
        ("openai_compat", "gpt-4o", 3, 85 + 8 * 170),
        ("anthropic", "claude", 4, 1_600),
        ("google", "gemini", 4, 4 * 258),
    ],
)
def test_a_picture_is_reserved_for_the_model_that_counts_it(
    provider: str, model: str, tiles: int, counted: int
) -> None:
    agent = Agent.objects.create(name="sees", provider=provider, model=model)
    item = uamp.ImageContent(image="", format="png", content_id="content_1")
    extents = {"content_1": [Extent(kind="picture", amount=tiles, size_bytes=1)]}
    reserved = tokens_of_media(item, extents, max_rates(get_spec(agent.pk))) or 0
    assert counted <= reserved <= 20 * counted
