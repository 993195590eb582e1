"""The initial state, and the error of a server that is down."""

from uap import AgentState
from upp import ErrorCode, UPPError

START = AgentState.initial()
DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
