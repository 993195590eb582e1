"""Tests of `payments_app.top_ups`."""
