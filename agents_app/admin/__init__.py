"""Django admin of agents and of MCP servers, and the form that tries an agent."""

from agents_app.admin import agents

__all__ = ["agents"]
