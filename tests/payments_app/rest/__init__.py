"""Tests of `payments_app.rest`."""
