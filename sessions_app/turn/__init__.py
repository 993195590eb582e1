"""From a request to its responses: what a turn says, who answers, what it may cost, its start.

Every transport enters at `start.start_response`. How one response runs is in `response`.
"""
