"""Tests of payments_app."""
