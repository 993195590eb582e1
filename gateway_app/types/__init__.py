"""Types that dialects share: turns, stored responses, media and example calls. Pure.

Nothing here reads a request or a row. Types shared by one family of protocols have their own
folder, such as `openai`.
"""
