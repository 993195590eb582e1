"""Branching conversations: a tree of agent states (UAP §7).

Each node holds the complete state at its place, so a branch never sees later messages of another
branch. The tree and its nodes are mutable; states are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

import msgspec

from uap.state import AgentState, InvalidState


@dataclass(kw_only=True)
class ThreadNode:
    """A place in the tree (UAP §7.2); assign `state` to record the conversation's progress."""

    id: str
    parent_id: str | None
    state: AgentState
    name: str | None = None
    children: list[str] = field(default_factory=list)


class _NodeJSON(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    parent_id: str | None
    state: dict[str, Any]
    children: tuple[str, ...]
    name: str | None = None


class _TreeJSON(msgspec.Struct, kw_only=True, rename="camel"):
    root_id: str
    current_id: str
    nodes: tuple[_NodeJSON, ...]


class ThreadTree:
    """A tree with one current node (UAP §7.1); a new tree has a root with an initial state."""

    def __init__(self) -> None:
        root = ThreadNode(id=str(uuid4()), parent_id=None, state=AgentState.initial(), name="root")
        self.nodes: dict[str, ThreadNode] = {root.id: root}
        self.root = root
        self.current = root

    def branch(self, from_id: str, name: str | None = None) -> str:
        """Add a child to a node, with the same state, and return its id.

        The current node does not change. Raises KeyError for an unknown id.
        """
        parent = self._node(from_id)
        node = ThreadNode(id=str(uuid4()), parent_id=from_id, state=parent.state, name=name)
        self.nodes[node.id] = node
        parent.children.append(node.id)
        return node.id

    def checkout(self, node_id: str) -> None:
        """Make a node the current one; raises KeyError for an unknown id."""
        self.current = self._node(node_id)

    def history(self) -> AgentState:
        """Return the state from the root to the current node."""
        return self.current.state

    def to_json(self) -> dict[str, Any]:
        """Return the tree as JSON, which shares nothing with the tree."""
        shape = _TreeJSON(
            root_id=self.root.id,
            current_id=self.current.id,
            nodes=tuple(
                _NodeJSON(
                    id=node.id,
                    parent_id=node.parent_id,
                    state=dict(node.state.to_json()),
                    children=tuple(node.children),
                    name=node.name,
                )
                for node in self.nodes.values()
            ),
        )
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape))
        return plain

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Create a tree from its JSON, with the same ids (UAP §15.3).

        Raises InvalidState if it is not a valid tree or contains an invalid state.
        """
        try:
            shape = msgspec.convert(given, type=_TreeJSON)
        except msgspec.ValidationError as error:
            raise InvalidState(f"This is not a thread tree: {error}") from error
        tree = cls()
        tree.nodes = {
            node.id: ThreadNode(
                id=node.id,
                parent_id=node.parent_id,
                state=AgentState.from_json(node.state),
                name=node.name,
                children=list(node.children),
            )
            for node in shape.nodes
        }
        if shape.root_id not in tree.nodes or shape.current_id not in tree.nodes:
            raise InvalidState("This is not a thread tree: its root or current node is missing.")
        tree.root, tree.current = tree.nodes[shape.root_id], tree.nodes[shape.current_id]
        if len(tree.nodes) < len(shape.nodes) or not tree._is_whole():
            raise InvalidState("This is not a thread tree: its nodes are not connected.")
        return tree

    def _node(self, node_id: str) -> ThreadNode:
        if node_id not in self.nodes:
            raise KeyError(f"Node not found: {node_id}")
        return self.nodes[node_id]

    def _is_whole(self) -> bool:
        """Return whether each node is reachable from the root exactly once, through its parent."""
        reached: set[str] = {self.root.id}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            for child_id in node.children:
                child = self.nodes.get(child_id)
                if child is None or child.parent_id != node.id or child_id in reached:
                    return False
                reached.add(child_id)
                waiting.append(child)
        return self.root.parent_id is None and len(reached) == len(self.nodes)
