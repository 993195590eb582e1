"""Conversations that branch."""

import json
from typing import Any
from uuid import UUID

import pytest

from tests.uap.agents import message_lines, model
from uap import AgentState, InvalidState, ThreadTree, agent


def test_a_tree_begins_with_a_root_that_is_current() -> None:
    """UAP §7.1: root and current."""
    tree = ThreadTree()

    assert tree.root is tree.current
    assert (tree.root.parent_id, tree.root.name, tree.root.children) == (None, "root", [])
    assert tree.history().messages == ()
    assert UUID(tree.root.id).version == 4


def test_a_branch_has_the_state_of_its_parent_and_is_not_current() -> None:
    """UAP §7.1: branch(fromId, name?) returns the node's id; §7.2: the fields of a node."""
    tree = ThreadTree()
    tree.current.state = AgentState.initial().with_step(3)
    branch = tree.branch(tree.root.id, "other")
    node = tree.nodes[branch]

    assert UUID(branch).version == 4
    assert (node.parent_id, node.name, node.state) == (tree.root.id, "other", tree.root.state)
    assert tree.root.children == [branch]
    assert tree.current is tree.root
    tree.root.state = AgentState.initial()
    assert node.state.step == 3


async def test_branches_keep_conversations_apart() -> None:
    """UAP §7.1: checkout switches the node, history is the state from the root to it."""
    tree = ThreadTree()
    bot = agent(model=model("one", "two", "three"))
    tree.current.state = (await bot.ask("a", tree.history())).state
    left, right = tree.branch(tree.root.id), tree.branch(tree.root.id)
    for branch, word in ((left, "b"), (right, "c")):
        tree.checkout(branch)
        tree.current.state = (await bot.ask(word, tree.history())).state

    assert message_lines(tree.history().messages) == [
        "user a",
        "assistant one",
        "user c",
        "assistant three",
    ]
    tree.checkout(left)
    assert message_lines(tree.history().messages) == [
        "user a",
        "assistant one",
        "user b",
        "assistant two",
    ]
    tree.checkout(tree.root.id)
    assert message_lines(tree.history().messages) == ["user a", "assistant one"]


@pytest.mark.parametrize("use", ["branch", "checkout"])
def test_an_unknown_node_is_refused(use: str) -> None:
    with pytest.raises(KeyError, match="Node not found: nowhere"):
        getattr(ThreadTree(), use)("nowhere")


def grown() -> ThreadTree:
    tree = ThreadTree()
    first = tree.branch(tree.root.id, "first")
    tree.checkout(tree.branch(first))
    tree.current.state = AgentState.initial().with_metadata("k", 1)
    return tree


def test_a_tree_comes_back_from_its_json() -> None:
    """UAP §7.1: toJSON serialises the tree."""
    tree = grown()
    again = ThreadTree.from_json(json.loads(json.dumps(tree.to_json())))

    assert again.nodes == tree.nodes
    assert (again.root.id, again.current.id) == (tree.root.id, tree.current.id)
    assert again.history() == tree.history()


def test_the_json_of_a_tree_names_its_nodes() -> None:
    tree = ThreadTree()

    assert tree.to_json() == {
        "rootId": tree.root.id,
        "currentId": tree.root.id,
        "nodes": [
            {
                "id": tree.root.id,
                "parentId": None,
                "state": tree.root.state.to_json(),
                "children": [],
                "name": "root",
            }
        ],
    }


def without_root(shape: dict[str, Any]) -> None:
    shape["rootId"] = "gone"


def without_current(shape: dict[str, Any]) -> None:
    shape["currentId"] = "gone"


def lost_child(shape: dict[str, Any]) -> None:
    shape["nodes"][0]["children"].append("gone")


def wrong_parent(shape: dict[str, Any]) -> None:
    shape["nodes"][2]["parentId"] = shape["rootId"]


def child_twice(shape: dict[str, Any]) -> None:
    shape["nodes"][0]["children"] *= 2


def lost_node(shape: dict[str, Any]) -> None:
    shape["nodes"][1]["children"] = []


def node_twice(shape: dict[str, Any]) -> None:
    shape["nodes"].append(shape["nodes"][2])


def root_with_parent(shape: dict[str, Any]) -> None:
    shape["nodes"][0]["parentId"] = "x"


def no_state(shape: dict[str, Any]) -> None:
    shape["nodes"][0]["state"] = {"version": "1.1.0"}


def no_nodes(shape: dict[str, Any]) -> None:
    del shape["nodes"]


@pytest.mark.parametrize(
    "spoil",
    [
        without_root,
        without_current,
        lost_child,
        wrong_parent,
        child_twice,
        lost_node,
        node_twice,
        root_with_parent,
        no_state,
        no_nodes,
    ],
)
def test_json_of_an_invalid_tree_is_refused(spoil: Any) -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    shape = grown().to_json()
    spoil(shape)

    with pytest.raises(InvalidState):
        ThreadTree.from_json(shape)
