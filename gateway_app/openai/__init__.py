"""The shared base of OpenAI's protocols: errors, refusals and parts of requests.

Each protocol has its own folder: `completions`, `openai_responses` and `realtime`. Anthropic's
(`anthropic`) shares refusals and bounds, not the format of errors.
"""
