"""Tests of `payments_app.spending`."""
