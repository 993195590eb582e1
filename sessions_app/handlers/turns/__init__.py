"""Handlers of turns: inputs, response requests, tool results and payments."""
