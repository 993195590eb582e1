"""The same question by every route: the same usage, the same cost, the same log of its chat.

`questions` has what is asked and what came back. `http_routes`, `response_routes`, `task_routes`
and `socket_routes` ask it as clients of each protocol do, `records` reads what the server kept.
"""
