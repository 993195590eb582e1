"""Handlers of turns: inputs, requests of responses, results of tools, payments."""
