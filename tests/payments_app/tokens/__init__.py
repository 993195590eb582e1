"""Tests of `payments_app.tokens`."""
