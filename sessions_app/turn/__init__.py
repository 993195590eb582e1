"""From a request to its responses: the message, the agents that answer, the holds, the start.

Every transport enters at `start.start_response`. How one response runs is in `response`.
"""
