"""Money: decimal strings become integers and back without a float, or are refused by name."""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_app.money import ASSETS, MAX_DIGITS, AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Callable

AMOUNTS = st.integers(min_value=-(10**MAX_DIGITS) + 1, max_value=10**MAX_DIGITS - 1)
MONEY = st.builds(Money, AMOUNTS, st.sampled_from(sorted(ASSETS)))


@given(MONEY)
def test_what_is_written_is_read_back(money: Money) -> None:
    assert Money.parse(str(money), money.asset, signed=True) == money


@given(MONEY)
def test_the_string_is_the_shortest(money: Money) -> None:
    text = str(money)

    assert "e" not in text.lower()
    assert not text.endswith(".")
    assert "." not in text or text[-1] != "0"
    assert text.lstrip("-").split(".")[0] == str(
        abs(money.amount) // 10 ** ASSETS[money.asset].scale
    )


@given(st.text(max_size=25))
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    try:
        money = Money.parse(text)
    except InvalidAmount:
        return
    assert set(text) <= set("0123456789.")
    assert money.amount >= 0


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0.01", 10_000_000),
        ("12", 12_000_000_000),
        ("0", 0),
        ("12.50", 12_500_000_000),
        ("0.000000001", 1),
        ("007", 7_000_000_000),
        ("999999999.999999999", 10**18 - 1),
    ],
)
def test_decimal_strings_are_shifted(text: str, amount: int) -> None:
    assert Money.parse(text).amount == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        " 1",
        "1\n",
        "1e3",
        "1E-2",
        "+1",
        "-1",
        "--1",
        "1.",
        ".5",
        ".",
        "1.2.3",
        "1,5",
        "1_000",
        "0x10",
        "NaN",
        "nan",
        "Infinity",
        "inf",
        "\uff10.\uff10\uff11",
        "\uff11",
        "\u0661",
        "\u0967\u0968",
        "\u00b2",
        "1\u00a0000",
        "$1",
        "1 USD",
        "0.0000000001",
        "1234567890",
        "0000000000000000001",
        "9" * 19,
        "0." + "0" * 18,
        "1\x00",
    ],
)
def test_a_bad_amount_is_refused(text: str) -> None:
    with pytest.raises(InvalidAmount):
        Money.parse(text)


def test_a_sign_is_read_only_where_it_may_stand() -> None:
    assert Money.parse("-0.5", signed=True).amount == -500_000_000
    assert Money.parse("-0", signed=True).amount == 0
    with pytest.raises(InvalidAmount, match="must not have a sign"):
        Money.parse("-0.5")
    with pytest.raises(InvalidAmount):
        Money.parse("+0.5", signed=True)


def test_places_are_those_of_the_asset() -> None:
    assert Money.parse("0.000001", "USDC").amount == 1
    with pytest.raises(InvalidAmount, match="6 decimal places"):
        Money.parse("0.0000001", "USDC")
    with pytest.raises(InvalidAmount, match="Unknown asset"):
        Money.parse("1", "EUR")


@pytest.mark.parametrize("amount", [1.0, True, "1", None, 10**18, -(10**18)])
def test_only_whole_numbers_of_18_digits_are_amounts(amount: Any) -> None:
    with pytest.raises(InvalidAmount):
        Money(amount)


def test_amounts_are_added_compared_and_multiplied_within_an_asset() -> None:
    one, two = Money(1), Money(2)

    assert one + one == two
    assert two - one == one
    assert -one == Money(-1)
    assert one * 2 == 2 * one == two
    assert one < two
    assert one <= Money(1)
    assert two > one
    assert two >= Money(2)
    assert not Money.zero()
    assert max(one, two) == two


def test_assets_do_not_mix() -> None:
    usd, usdc = Money(1), Money(1, "USDC")

    assert usd != usdc
    for mixed in (lambda: usd + usdc, lambda: usd - usdc, lambda: usd < usdc, lambda: usd >= usdc):
        with pytest.raises(AssetMismatch):
            mixed()


def test_money_does_not_mix_with_numbers() -> None:
    number: Any = 0.5
    mixtures: list[Callable[[], object]] = [
        lambda: Money(1) + number,
        lambda: Money(1) < number,
        lambda: Money(2) * number,
    ]
    for mixed in mixtures:
        with pytest.raises(InvalidAmount):
            mixed()


@pytest.mark.parametrize(
    ("amount", "part", "whole", "share"),
    [(5, 1, 2, 2), (7, 1, 2, 4), (10, 1, 3, 3), (20, 1, 3, 7), (-5, 1, 2, -2), (7, 0, 3, 0)],
)
def test_a_share_is_rounded_half_to_even(amount: int, part: int, whole: int, share: int) -> None:
    assert Money(amount).share(part, whole) == Money(share)


@pytest.mark.parametrize(("part", "whole"), [(-1, 2), (1, 0), (1, -2)])
def test_a_share_is_a_part_of_a_whole(part: int, whole: int) -> None:
    with pytest.raises(InvalidAmount):
        Money(5).share(part, whole)
