"""What one request may do: checks the rules of policy for an object and the projects that it belongs to.

A check costs no statement: reading an object includes its owner.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ingot.db import listing, models, nodes

Facts = tuple[tuple[str, str], ...]
"""Names with values."""

_Owned = TypeVar("_Owned", bound=models.Base, contravariant=True)


class Target(NamedTuple):
    """What rules compare a user with: the projects that an object belongs to.

    :param noun: prefix of the names: ``%(node.owner)s``.
    """

    noun: str = ""
    facts: Facts = ()


NO_TARGET = Target()


def build_target(noun: str, **facts: object) -> Target:
    """Return what rules compare with, without the facts that have no value.

    A rule that compares with None would be met by a user without a project.
    """
    return Target(noun, tuple((f"{noun}.{name}", str(value)) for name, value in facts.items() if value is not None))


class Ownership(NamedTuple, Generic[_Owned]):
    """How the objects of a resource belong to projects.

    :param noun: the resource in the names of rules.
    :param target: returns what rules compare with for a record.
    :param condition: returns the condition of lists for the objects of one project.
    """

    noun: str
    target: Callable[[_Owned], Target]
    condition: Callable[[str], listing.Condition | listing.Either]


def build_node_target(node: models.Node) -> Target:
    """Return what rules compare with for a node.

    :param node: needs owner and lessee.
    """
    return build_target("node", owner=node.owner, lessee=node.lessee)


NODE: Ownership[models.Node] = Ownership(
    "node", build_node_target, lambda project: listing.Condition(("owner", "lessee"), "equals", project)
)


def build_owned_target(record: nodes.OfNode) -> Target:
    """Return what rules compare with for something that belongs to a node."""
    return build_target("node", owner=record.node_owner, lessee=record.node_lessee)


def build_ownership(noun: str) -> Ownership[nodes.OfNode]:
    """Return the ownership of what belongs to a node."""
    return Ownership(
        noun, build_owned_target, lambda project: listing.Condition(("node_owner", "node_lessee"), "equals", project)
    )


class Access:
    """Everything is allowed: the access of administrators, and of agents and machines, which have no credentials."""

    limited = False
    """Whether anything may be refused or hidden at all."""

    sees_all = True
    """Whether all fields of nodes are shown."""

    def permits(self, rule: str, target: Target = NO_TARGET) -> bool:
        """Return whether the request may do what a rule allows."""
        return True

    def require(self, rule: str, target: Target = NO_TARGET) -> None:
        """Require that a rule allows the request.

        :raises Forbidden: it does not.
        """

    def require_seen(self, rule: str, target: Target, noun: str, ident: str) -> None:
        """Require as :meth:`require` does, hiding that the object exists from users who may not see it.

        :param noun: what it is, for the message.
        :param ident: what the request calls it.
        :raises NotFound: the request may not even see it.
        """

    def explain(self, rule: str, target: Target = NO_TARGET) -> str | None:
        """Return why the request may not do what a rule is for; None if it may."""
        return None

    def limit_to_project(self, rules: str, requested: str | None = None) -> str | None:
        """Return the project whose objects a list is limited to, if it is.

        :param rules: what the names of its rules begin with, as ``baremetal:node``.
        :param requested: the project whose objects are requested.
        :raises Forbidden: it may not see them.
        """
        return None

    def check_required(self) -> None:
        """Check, before the answer leaves, that the handler required a rule.

        :raises RuntimeError: it did not.
        """
