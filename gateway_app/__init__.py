"""Foreign agent protocols: each dialect acts as a UAMP client inside the process.

Each dialect has a folder. Its pure modules translate requests into client events and server events
into frames; `views` or `consumer` is its edge. Only `backend` calls the other apps. `types` holds
the types that dialects share, `openai` the parts that OpenAI's dialects share, and `protocols`
shows how to call an agent through each protocol. Turns, payments and rows live in the other apps.
"""
