"""Tests of `payments_app.admin`."""
