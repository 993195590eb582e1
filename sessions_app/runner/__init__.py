"""The turn runner: the one way from a turn to its answer.

`start_response` is where every transport enters; `cancel_response`, `settle_call` and `source` are
what else a transport needs; `startup`, `drain` and `shutdown` frame the life of a server process.
"""

from sessions_app.runner.context import Listener
from sessions_app.runner.lifespan import drain, is_ready, shutdown, startup
from sessions_app.runner.payment_events import required as payment_required
from sessions_app.runner.process import Follower, Process, current, tell_decision
from sessions_app.runner.request import StartedTurn, TurnRequest
from sessions_app.runner.run import Run
from sessions_app.runner.start import start_response

__all__ = [
    "Follower",
    "Listener",
    "Process",
    "Run",
    "StartedTurn",
    "TurnRequest",
    "current",
    "drain",
    "is_ready",
    "payment_required",
    "shutdown",
    "start_response",
    "startup",
    "tell_decision",
]
