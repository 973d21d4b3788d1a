"""What one request may do: checks the rules of policy for an object and the projects that it belongs to.

A check costs no statement: reading an object includes its owner.
"""

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from ingot.common import context, errors
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

    def limit_to_project(self, noun: str, requested: str | None = None) -> str | None:
        """Return the project whose objects a list is limited to, if it is.

        :param noun: the resource in the names of rules.
        :param requested: the project whose objects are requested.
        :raises Forbidden: it may not see them.
        """
        return None

    def check_required(self) -> None:
        """Check, before the answer leaves, that the handler required a rule.

        :raises RuntimeError: it did not.
        """


class Identity(NamedTuple):
    """The user of a request as rules see it.

    :param key: the same for users for whom all rules give the same answers.
    :param words: all values that can be compared, in lower case.
    """

    values: dict[str, object]
    key: str
    words: str

    @classmethod
    def from_context(cls, ctx: context.RequestContext) -> "Identity":
        values = ctx.to_policy_values()
        words = (word for value in values.values() for word in (value if isinstance(value, list) else (value,)))
        return cls(values, repr(values), "\n".join(map(str, words)).lower())


class Rules(Protocol):
    """The rules in force; see :class:`ingot.api.auth.enforcer.Enforcer`."""

    def allows(self, rule: str, facts: Facts, identity: Identity) -> bool: ...

    def reduce_facts(self, facts: Facts, identity: Identity) -> Facts: ...


_SEEN = {"node": "baremetal:node:get", "allocation": "baremetal:allocation:get"}
"""By noun: to a user whom this rule refuses there is no such object, whatever the request."""

_ALL_FIELDS = "baremetal:node:get:filter_threshold"


class Limited(Access):
    """What the rules allow to the identity of one request."""

    limited = True

    def __init__(self, rules: Rules, ctx: context.RequestContext) -> None:
        self._rules = rules
        self._ctx = ctx
        self._identity = Identity.from_context(ctx)
        # A list checks the same for a thousand nodes.
        self._facts: dict[Target, Facts] = {}
        self._known: dict[tuple[str, Facts], bool] = {}
        self._required = False

    def permits(self, rule: str, target: Target = NO_TARGET) -> bool:
        if target not in self._facts:
            self._facts[target] = self._rules.reduce_facts(target.facts, self._identity)
        key = (rule, self._facts[target])
        if key not in self._known:
            self._known[key] = self._rules.allows(*key, self._identity)
        return self._known[key]

    @functools.cached_property
    def sees_all(self) -> bool:  # type: ignore[override]
        return self.permits(_ALL_FIELDS)

    def require(self, rule: str, target: Target = NO_TARGET) -> None:
        self._required = True
        if not self.permits(rule, target):
            raise self._refused_error(rule)

    def require_seen(self, rule: str, target: Target, noun: str, ident: str) -> None:
        if target.noun in _SEEN and not self.permits(_SEEN[target.noun], target):
            raise errors.NotFound(noun=noun, ident=ident)
        self.require(rule, target)

    def limit_to_project(self, noun: str, requested: str | None = None) -> str | None:
        self._required = True
        every = f"baremetal:{noun}:list_all"
        if self.permits(every):
            return None
        own: str | None = self._ctx.project_id
        if own is None or requested not in (None, own):
            raise self._refused_error(every)
        self.require(f"baremetal:{noun}:list")
        return own

    def check_required(self) -> None:
        if not self._required:
            raise RuntimeError(
                "A handler answered without a check of what the request may do: its route declares a rule."
            )

    def _refused_error(self, rule: str) -> errors.Forbidden:
        roles = ", ".join(self._ctx.roles) or "none"
        where = f"in project {self._ctx.project_id}" if self._ctx.project_id else "in the system"
        if not self._ctx.project_id and self._ctx.system_scope != "all":
            where = "in neither a project nor the system"
        return errors.Forbidden(
            f"Access was denied to the following resource: {rule}. The token has the roles {roles} {where}; ask an "
            "administrator for one that this rule of policy allows."
        )
