"""Tests of `payments_app.ledger`."""
