"""Django admin of agents and MCP servers, and the form for trying an agent."""

from agents_app.admin import agents

__all__ = ["agents"]
