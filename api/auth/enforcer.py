"""The rules in force, and what they allow to one request.

They are the defaults of :mod:`ingot.api.auth.rules`, with what the operator's policy file changes.
"""

import functools
import importlib.metadata
import itertools
import pathlib
import re
import threading
import time
from collections.abc import Hashable
from typing import NamedTuple

from oslo_config import cfg
from oslo_log import log
from oslo_policy import opts, policy

from ingot.api.auth import rules
from ingot.api.auth.access import NO_TARGET, Access, Facts, Target
from ingot.common import context, errors

LOG = log.getLogger(__name__)

DEFAULT_FILE = "policy.yaml"
CHECK_INTERVAL_S = 1.0
"""Seconds between two checks whether the policy file has changed; answers are remembered no longer."""

_MOST_ANSWERS = 20_000

_OF_OTHERS = [entry.name for entry in importlib.metadata.entry_points(group="oslo.policy.rule_checks")]
_MORE_THAN_EQUAL = re.compile(rf"\b({'|'.join(map(re.escape, _OF_OTHERS))}):|%\([^)]*\)[^s]")
"""What makes a rule more than comparisons of whole values: checks that others bring (http), parts of values."""

_OTHER = "\0"
"""Stands for the values that no rule can distinguish."""

_Stamp = tuple[tuple[str, int, int], ...]


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


class _Snapshot(policy.Enforcer):
    """The rules at one moment. The library would check the files at each question."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self.suppress_default_change_warnings = True
        for name, (check, about) in rules.BLOCKS.items():
            self.register_default(policy.RuleDefault(name, check, about))
        for rule in rules.RULES.values():
            self.register_default(policy.RuleDefault(rule.name, rule.check, rule.about, scope_types=list(rule.scopes)))
        super().load_rules()
        self.words = "\n".join(map(str, self.rules.values())).lower()
        self.compares = not _MORE_THAN_EQUAL.search(self.words)
        self.answers: dict[Hashable, bool] = {}  # the library is slow

    def load_rules(self, force_reload: bool = False) -> None:
        """Do nothing: another snapshot is made when the files change."""


class Enforcer:
    """Answers whether a rule allows a request.

    :raises ConfigurationError: the policy file cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        for group, options in opts.list_opts():
            conf.register_opts(options, group=group)
        self._conf = conf
        elevated = conf.rbac_service_role_elevated_access
        self._constants = {"config.service_project_name": conf.rbac_service_project_name} if elevated else {}
        self._lock = threading.Lock()
        self._stamp: _Stamp = ()
        self._snapshot = self._read()
        self._checked_at = time.monotonic()

    def allows(self, rule: str, facts: Facts, identity: Identity) -> bool:
        """Return whether an identity may do what a rule allows.

        A rule that does not exist, and a token of a scope that the rule is not for, is an answer too: no.

        :param facts: about the object, by the names that rules use.
        """
        snapshot = self.rules
        answers, key = snapshot.answers, (rule, facts, identity.key)
        if key not in answers:
            target = {**identity.values, **self._constants, **dict(facts)}
            answers[key] = bool(snapshot.enforce(rule, target, dict(identity.values)))
        return answers[key]

    def reduce_facts(self, facts: Facts, identity: Identity) -> Facts:
        """Return the facts about an object, as far as rules can distinguish them.

        A rule compares them with what is known of the user, or with its own words. A value that occurs in neither is
        like any other such value: the nodes of a thousand other projects are one question.
        """
        snapshot = self.rules
        if not snapshot.compares:
            return facts
        words = (identity.words, snapshot.words)
        return tuple(
            (name, value if any(value.lower() in known for known in words) else _OTHER) for name, value in facts
        )

    @property
    def rules(self) -> _Snapshot:
        """The rules at this moment. They are read again when a file has changed, and their answers forgotten anyway."""
        if len(self._snapshot.answers) > _MOST_ANSWERS:
            self._snapshot.answers = {}
        if time.monotonic() - self._checked_at < CHECK_INTERVAL_S or not self._lock.acquire(blocking=False):
            return self._snapshot
        try:
            self._checked_at = time.monotonic()
            self._snapshot.answers = {}
            if self._stamp != _read_stamp(self._conf):
                self._snapshot = self._read()
                LOG.info("Policy rules were read again")
        except errors.ConfigurationError as exc:
            LOG.error("Policy rules stay as they were: %s", exc.message)  # noqa: TRY400 - the message is complete
        finally:
            self._lock.release()
        return self._snapshot

    def _read(self) -> _Snapshot:
        name = self._conf.oslo_policy.policy_file
        if name != DEFAULT_FILE and self._conf.find_file(name) is None:
            raise _unusable_error(name, "there is no such file")
        self._stamp = _read_stamp(self._conf)
        try:
            return _Snapshot(self._conf)
        except (cfg.Error, policy.InvalidDefinitionError, AttributeError, TypeError, ValueError) as exc:
            raise _unusable_error(name, f"{exc}; it maps names of rules to check strings, in YAML") from exc


def _unusable_error(name: str, why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        option="[oslo_policy] policy_file", value=name, allowed=f"It cannot be used: {why}."
    )


def _read_stamp(conf: cfg.ConfigOpts) -> _Stamp:
    """Return what changes when a file of rules does."""
    found = filter(None, map(conf.find_file, (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs)))
    listed = (sorted(path.iterdir()) if path.is_dir() else [path] for path in map(pathlib.Path, found))
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in itertools.chain(*listed))


_SEEN = {"node": "baremetal:node:get", "allocation": "baremetal:allocation:get"}
"""By noun: to a user whom this rule refuses there is no such object, whatever the request."""


class Limited(Access):
    """What the rules allow to the identity of one request."""

    limited = True

    def __init__(self, enforcer: Enforcer, ctx: context.RequestContext) -> None:
        self._enforcer = enforcer
        self._ctx = ctx
        self._identity = Identity.from_context(ctx)
        # A list checks the same for a thousand nodes.
        self._facts: dict[Target, Facts] = {}
        self._known: dict[tuple[str, Facts], bool] = {}
        self._required = False

    def permits(self, rule: str, target: Target = NO_TARGET) -> bool:
        if target not in self._facts:
            self._facts[target] = self._enforcer.reduce_facts(target.facts, self._identity)
        key = (rule, self._facts[target])
        if key not in self._known:
            self._known[key] = self._enforcer.allows(*key, self._identity)
        return self._known[key]

    @functools.cached_property
    def sees_all(self) -> bool:  # type: ignore[override]
        return self.permits("baremetal:node:get:filter_threshold")

    def require(self, rule: str, target: Target = NO_TARGET) -> None:
        self._required = True
        if not self.permits(rule, target):
            raise self._refused_error(rule)

    def require_seen(self, rule: str, target: Target, noun: str, ident: str) -> None:
        if target.noun in _SEEN and not self.permits(_SEEN[target.noun], target):
            raise errors.NotFound(noun=noun, ident=ident)
        self.require(rule, target)

    def explain(self, rule: str, target: Target = NO_TARGET) -> str | None:
        if self.permits(rule, target):
            return None
        return f"Not allowed to {self._describe_token()}; ask an administrator for a role that {rule} allows."

    def limit_to_project(self, rules: str, requested: str | None = None) -> str | None:
        self._required = True
        every = f"{rules}:list_all"
        if self.permits(every):
            return None
        own: str | None = self._ctx.project_id
        if own is None or requested not in (None, own):
            raise self._refused_error(every)
        self.require(f"{rules}:list")
        return own

    def check_required(self) -> None:
        if not self._required:
            raise RuntimeError(
                "A handler answered without a check of what the request may do: its route declares a rule."
            )

    def _refused_error(self, rule: str) -> errors.Forbidden:
        return errors.Forbidden(
            f"Access was denied to the following resource: {rule}. The token has {self._describe_token()}; ask an "
            "administrator for one that this rule of policy allows."
        )

    def _describe_token(self) -> str:
        roles = ", ".join(self._ctx.roles) or "none"
        where = f"in project {self._ctx.project_id}" if self._ctx.project_id else "in the system"
        if not self._ctx.project_id and self._ctx.system_scope != "all":
            where = "in neither a project nor the system"
        return f"the roles {roles} {where}"
