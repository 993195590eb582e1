"""The path from a request to its responses: message, answering agents, holds and launch.

Every transport enters through `start.start_response`. `response` runs each response.
"""
