"""The OpenAI-compatible provider against a server on a real socket."""
