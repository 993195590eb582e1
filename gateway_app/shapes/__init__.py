"""Shapes that dialects share: turns, kept responses, media, example calls. Pure.

Nothing here reads a request or a row. What one family of protocols shares has a folder of its own,
as `openai`.
"""
