"""Tests of `payments_app.x402`."""
