"""What one request may do: asks the rules of policy about the object at hand and whose it is.

Asking costs no statement: handlers tell what they have read anyway, and reading an object includes whose it is.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ingot.common import context, errors
from ingot.db import listing, models

Facts = tuple[tuple[str, str], ...]
"""Names with values."""


class Whose(NamedTuple):
    """Whose an object is, in the words of rules.

    :param kind: prefix of the names: ``%(node.owner)s``.
    """

    kind: str = ""
    facts: Facts = ()


NOBODYS = Whose()


def whose(kind: str, **facts: Any) -> Whose:
    # What has no value has no name either: a rule that compares with None would be met by whoever has no project.
    return Whose(kind, tuple((f"{kind}.{name}", str(value)) for name, value in facts.items() if value is not None))


class Ownership(NamedTuple):
    """How the objects of a resource belong to projects.

    :param noun: the resource in the names of rules.
    :param whose: tells it of a record.
    :param within: the condition of lists for the objects of one project.
    """

    noun: str
    whose: Callable[[models.Record], Whose]
    within: Callable[[str], listing.Condition | listing.Either]


def of_node(node: models.Node) -> Whose:
    """
    :param node: needs owner and lessee.
    """
    return whose("node", owner=node.owner, lessee=node.lessee)


NODE = Ownership("node", of_node, lambda project: listing.Condition(("owner", "lessee"), "equals", project))


def through_node(noun: str) -> Ownership:
    """Of what belongs to a node; its records have node_owner and node_lessee."""
    return Ownership(
        noun,
        lambda record: whose("node", owner=record.node_owner, lessee=record.node_lessee),
        lambda project: listing.Condition(("node_owner", "node_lessee"), "equals", project),
    )


class Access:
    """Everything is allowed: what administrators have, and what agents and machines may ask for without a name."""

    limited = False
    """Whether anything may be refused or hidden at all."""

    sees_all = True
    """Whether all fields of nodes are shown."""

    def permits(self, rule: str, about: Whose = NOBODYS) -> bool:
        """Whether the request may do what a rule allows."""
        return True

    def require(self, rule: str, about: Whose = NOBODYS) -> None:
        """
        :raises Forbidden: the request may not do what the rule allows.
        """

    def require_seen(self, rule: str, about: Whose, noun: str, ident: str) -> None:
        """As :meth:`require`, for an object of whose existence strangers must not learn.

        :param noun: what it is, for the message.
        :param ident: what the request calls it.
        :raises NotFound: the request may not even see it.
        """

    def project(self, noun: str, asked: str | None = None) -> str | None:
        """The project whose objects a list is limited to, if it is.

        :param noun: the resource in the names of rules.
        :param asked: the project whose objects the request asks for.
        :raises Forbidden: it may not see them.
        """
        return None

    def settle(self) -> None:
        """Called before the answer leaves.

        :raises RuntimeError: the handler asked no rule.
        """


class Identity(NamedTuple):
    """Who asks, in the words of rules.

    :param key: the same for whom all rules are answered the same.
    :param words: all that can be compared with, in lower case.
    """

    values: dict[str, Any]
    key: str
    words: str

    @classmethod
    def of(cls, ctx: context.RequestContext) -> "Identity":
        values = ctx.to_policy_values()
        words = (word for value in values.values() for word in (value if isinstance(value, list) else (value,)))
        return cls(values, repr(values), "\n".join(map(str, words)).lower())


class Rules(Protocol):
    """The rules in force; see :class:`ingot.api.auth.enforcer.Enforcer`."""

    def met(self, rule: str, facts: Facts, identity: Identity) -> bool: ...

    def told_apart(self, facts: Facts, identity: Identity) -> Facts: ...


_SEEN = {"node": "baremetal:node:get", "allocation": "baremetal:allocation:get"}
"""By kind: who does not meet this rule is told that there is no such object, whatever is asked of it."""

_ALL_FIELDS = "baremetal:node:get:filter_threshold"


class Limited(Access):
    """What the rules allow to the identity of one request."""

    limited = True

    def __init__(self, rules: Rules, ctx: context.RequestContext) -> None:
        self._rules = rules
        self._ctx = ctx
        self._identity = Identity.of(ctx)
        # A list asks the same of a thousand nodes.
        self._facts: dict[Whose, Facts] = {}
        self._known: dict[tuple[str, Facts], bool] = {}
        self._settled = False

    def permits(self, rule: str, about: Whose = NOBODYS) -> bool:
        if about not in self._facts:
            self._facts[about] = self._rules.told_apart(about.facts, self._identity)
        key = (rule, self._facts[about])
        if key not in self._known:
            self._known[key] = self._rules.met(*key, self._identity)
        return self._known[key]

    @functools.cached_property
    def sees_all(self) -> bool:  # type: ignore[override]
        return self.permits(_ALL_FIELDS)

    def require(self, rule: str, about: Whose = NOBODYS) -> None:
        self._settled = True
        if not self.permits(rule, about):
            raise self._refusal(rule)

    def require_seen(self, rule: str, about: Whose, noun: str, ident: str) -> None:
        if about.kind in _SEEN and not self.permits(_SEEN[about.kind], about):
            raise errors.NotFound(noun=noun, ident=ident)
        self.require(rule, about)

    def project(self, noun: str, asked: str | None = None) -> str | None:
        self._settled = True
        every = f"baremetal:{noun}:list_all"
        if self.permits(every):
            return None
        own: str | None = self._ctx.project_id
        if own is None or asked not in (None, own):
            raise self._refusal(every)
        self.require(f"baremetal:{noun}:list")
        return own

    def settle(self) -> None:
        if not self._settled:
            raise RuntimeError("A handler answered without asking what the request may do: its route declares a rule.")

    def _refusal(self, rule: str) -> errors.Forbidden:
        roles = ", ".join(self._ctx.roles) or "none"
        where = f"in project {self._ctx.project_id}" if self._ctx.project_id else "in the system"
        if not self._ctx.project_id and self._ctx.system_scope != "all":
            where = "in neither a project nor the system"
        return errors.Forbidden(
            f"Access was denied to the following resource: {rule}. The token has the roles {roles} {where}; ask an "
            "administrator for one that this rule of policy allows."
        )
