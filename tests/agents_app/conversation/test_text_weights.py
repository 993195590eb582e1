"""The estimate of a text's tokens beside the counts of real vocabularies."""

# ruff: noqa: RUF001 the texts are in other scripts

from __future__ import annotations

import pytest

from agents_app.conversation.text_weights import CHARS_PER_TOKEN, max_weight, weight

# The first sentence of the Universal Declaration of Human Rights, and its tokens with o200k,
# cl100k, Claude 2, Llama 3 and Mistral 7B.
COUNTS = {
    "Russian": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах.",
        (17, 35, 40, 22, 26),
    ),
    "Ukrainian": (
        "Всі люди народжуються вільними і рівними у своїй гідності та правах.",
        (22, 44, 45, 20, 27),
    ),
    "Bulgarian": (
        "Всички хора се раждат свободни и равни по достойнство и права.",
        (19, 31, 34, 24, 26),
    ),
    "Greek": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
        (31, 76, 85, 32, 84),
    ),
    "Arabic": (
        "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.",
        (18, 37, 45, 20, 46),
    ),
    "Hebrew": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
        (20, 56, 49, 56, 54),
    ),
    "Japanese": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
        (35, 45, 43, 27, 47),
    ),
    "Korean": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
        (24, 41, 44, 24, 42),
    ),
    "German": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
        (14, 16, 19, 16, 18),
    ),
}


@pytest.mark.parametrize("language", COUNTS)
def test_the_estimate_lies_between_the_counts_of_real_vocabularies(language: str) -> None:
    text, counts = COUNTS[language]
    estimate = weight(text) / CHARS_PER_TOKEN
    assert min(counts) <= estimate <= max(counts)
    assert weight(text) <= max_weight(text)
