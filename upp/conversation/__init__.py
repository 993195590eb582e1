"""Messages, media blocks, turns and threads (UPP-1.3 §6 to §8).

Tools are in `upp.tools`. Nothing here sends a request.
"""
