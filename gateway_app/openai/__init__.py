"""The base of OpenAI's protocols: errors, refusals, parts of requests.

Each protocol has its own folder: `completions`, `openai_responses`, `realtime`.
"""
