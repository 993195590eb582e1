"""What OpenAI's protocols have in common: errors, refusals, parts of requests.

Each protocol has its own folder: `completions`, `openai_responses`, `realtime`.
"""
