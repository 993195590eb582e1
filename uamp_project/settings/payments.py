"""Payments: token signing, x402, top-ups, and the reservation and price of an answer."""

from uamp_project.settings.environment import (
    amount,
    choice,
    integer,
    items,
    json_object,
    number,
    string,
)

# This server's public address, which is the `iss` of the payment tokens that it signs.
UAMP_ISSUER = string("UAMP_ISSUER", f"http://localhost:{string('PORT', '8000')}")
# x402's scheme exact: the facilitator that verifies and settles on-chain, and the receiver.
UAMP_X402_FACILITATOR = string("UAMP_X402_FACILITATOR")
UAMP_X402_PAY_TO = string("UAMP_X402_PAY_TO")
UAMP_X402_NETWORK = string("UAMP_X402_NETWORK", "eip155:8453")
UAMP_X402_ASSET = string("UAMP_X402_ASSET", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
UAMP_X402_ASSET_NAME = string("UAMP_X402_ASSET_NAME", "USD Coin")
UAMP_X402_ASSET_VERSION = string("UAMP_X402_ASSET_VERSION", "2")
UAMP_X402_SECONDS = number("UAMP_X402_SECONDS", 30)
# Top-up providers as dotted paths, and the largest amount of one top-up.
UAMP_TOPUP_PROVIDERS = items("UAMP_TOPUP_PROVIDERS", "payments_app.top_ups.manual.ManualProvider")
UAMP_TOPUP_MAX = amount("UAMP_TOPUP_MAX", "1000")
# The most that one operator adjusts alone in 24 hours, and the largest adjustment.
UAMP_ADJUSTMENT_ALONE = amount("UAMP_ADJUSTMENT_ALONE", "100")
UAMP_ADJUSTMENT_MAX = amount("UAMP_ADJUSTMENT_MAX", "10000")
UAMP_STRIPE_KEY = string("UAMP_STRIPE_KEY")
UAMP_STRIPE_WEBHOOK_SECRET = string("UAMP_STRIPE_WEBHOOK_SECRET")
UAMP_STRIPE_API = string("UAMP_STRIPE_API")
# How long an answer waits for its payment, and the longest time that a reservation is held.
UAMP_PAYMENT_SECONDS = number("UAMP_PAYMENT_SECONDS", 900)
UAMP_HOLD_SECONDS = number("UAMP_HOLD_SECONDS", 172800)
# Output tokens reserved for a step when neither client nor agent sets max_tokens.
UAMP_RESERVE_TOKENS = integer("UAMP_RESERVE_TOKENS", 512)
# Additional output tokens reserved if a model reasons without a stated limit.
UAMP_RESERVE_REASONING_TOKENS = integer("UAMP_RESERVE_REASONING_TOKENS", 4096)
# How to charge for an answer that failed or was stopped.
UAMP_CHARGE_UNFINISHED = choice(
    "UAMP_CHARGE_UNFINISHED", "delivered", ("delivered", "usage", "none", "full")
)
# The server's share of what agents earn, in hundredths of a percent.
UAMP_FEE_BASIS_POINTS = integer("UAMP_FEE_BASIS_POINTS", 0, maximum=10_000)
# The `ap2` member of payment.required, as a JSON object (UAMP §7.2).
UAMP_AP2 = json_object("UAMP_AP2")
