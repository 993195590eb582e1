"""Agents as members: when they answer, whom they address, their budgets and presence."""
