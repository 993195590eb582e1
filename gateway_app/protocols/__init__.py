"""All protocols side by side: the directory of agents, and how to call them in each protocol.

`native` shows UAMP itself, `table` lists the parts of all dialects, `directory` serves the pages of
agents, and `console` the frames of a message. No dialect imports from here.
"""
