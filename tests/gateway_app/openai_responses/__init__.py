"""OpenAI's Responses API, on the real server: what requests ask for, and what answers say."""
