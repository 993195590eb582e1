"""Django admin of agents, of MCP servers, and the form in which an operator tries an agent."""

from agents_app.admin import agents

__all__ = ["agents"]
