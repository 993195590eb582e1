"""Foreign agent protocols: each dialect is a UAMP client inside the process.

A dialect has a folder: pure files turn its requests into client events and server events into its
frames, `views` or `consumer` is its edge. `doors` alone calls the rooms below, `shapes` is what
dialects have in common, `openai` what OpenAI's have, `protocols` how an agent is called in each. No
turn, no payment and no storage lives here.
"""
