"""Sources of keys."""

import pytest

from upp.config.keys import DynamicKey, Key, RoundRobinKeys, WeightedKeys, mask_key, resolve_key


def test_keys_take_turns() -> None:
    keys = RoundRobinKeys(["a", "b"])
    assert [keys.get_key() for _ in range(3)] == ["a", "b", "a"]


def test_keys_are_drawn_by_their_weight() -> None:
    draws = iter([0.0, 0.24, 0.25, 0.99])
    keys = WeightedKeys({"never": 0, "a": 1, "b": 3}, draw=lambda: next(draws))
    assert [keys.get_key() for _ in range(4)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}, {"a": 2.0, "b": -1.0}])
def test_weights_that_choose_nothing_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        WeightedKeys(weights)


def test_no_keys_cannot_take_turns() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        RoundRobinKeys([])


async def later() -> str:
    return "later"


@pytest.mark.parametrize(
    ("key", "resolved"),
    [
        ("given", "given"),
        (lambda: "called", "called"),
        (later, "later"),
        (DynamicKey(later), "later"),
        (RoundRobinKeys(["first"]), "first"),
    ],
)
async def test_every_kind_of_key_is_resolved(key: Key, resolved: str) -> None:
    assert await resolve_key(key) == resolved


def test_a_masked_key_shows_its_ends_only() -> None:
    assert mask_key("sk-secret-1234") == "sk-s…1234"
    assert mask_key("12345678") == "***"
