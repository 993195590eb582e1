"""Foreign agent protocols: each dialect is a UAMP client inside the process.

A dialect has a folder: pure files turn its requests into client events and server events into its
frames, `views` or `consumer` is its edge. `doors` alone calls the other apps, `shapes` is what
dialects have in common, `openai` what OpenAI's have, `protocols` how an agent is called in each.
Turns, payments and rows are in the other apps.
"""
