"""Requests to addresses that a model, a page, a message or a row names: one guard for all."""
