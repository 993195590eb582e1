"""OpenAI's Realtime API on a WebSocket of the real server, in both dialects."""
