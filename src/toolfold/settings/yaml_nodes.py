"""YAML read into nodes, counted before anything is made of them.

An alias stands for all that it names, so ten lines of aliases of aliases stand for a
thousand million values. What a file comes to with its aliases written out is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from yaml import Node

__all__ = ["compose", "construct"]

VALUES_AT_MOST = 100_000
"""How many values a file may hold with its aliases written out."""


class _TooMuchError(yaml.YAMLError):
    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def compose(text: str) -> Node | None:
    """Return the node of a document.

    Raises:
        yaml.YAMLError: It is no YAML, or comes to more than is read.
    """
    try:
        root = yaml.SafeLoader(text).get_single_node()
        if root is not None:
            _count(root, {})
    except RecursionError:
        raise _TooMuchError("it nests too deep") from None
    return root


def construct(text: str) -> Any:
    """Return the value of a document.

    Raises:
        yaml.YAMLError: It is no YAML, or comes to more than is read.
    """
    from yaml.constructor import SafeConstructor

    root = compose(text)
    constructor: Any = SafeConstructor()
    return None if root is None else constructor.construct_document(root)


def _count(node: Node, counted: dict[int, int]) -> int:
    known = counted.get(id(node))
    if known == 0:
        raise _TooMuchError("an alias holds itself")
    if known is None:
        counted[id(node)] = 0
        known = 1
        if isinstance(node, yaml.MappingNode):
            known += sum(_count(k, counted) + _count(v, counted) for k, v in node.value)
        elif isinstance(node, yaml.SequenceNode):
            known += sum(_count(each, counted) for each in node.value)
        if known > VALUES_AT_MOST:
            raise _TooMuchError(f"with its aliases it holds more than {VALUES_AT_MOST:,} values")
        counted[id(node)] = known
    return known
