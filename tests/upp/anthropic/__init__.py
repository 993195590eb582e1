"""Anthropic's Messages API, against a server on a real socket that speaks as documented."""
