"""The state in which runs begin, and a server that is down."""

from uap import AgentState
from upp import ErrorCode, UPPError

START = AgentState.initial()
DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
