"""All protocols side by side: the directory of agents, with the calls of each protocol.

`native` is UAMP's own part, `table` has the parts of all dialects, `directory` the pages of
agents, `console` the frames of a message. No dialect imports from here.
"""
