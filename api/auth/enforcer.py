"""The rules in force: the defaults, with what the operator's policy file changes."""

import importlib.metadata
import os
import re
import threading
import time
from collections.abc import Hashable, Sequence

from oslo_config import cfg
from oslo_log import log
from oslo_policy import opts, policy

from ingot.api.auth.access import Facts, Identity
from ingot.common import errors

LOG = log.getLogger(__name__)

DEFAULT_FILE = "policy.yaml"
LOOKED_FOR_S = 1.0
"""Seconds between two looks at whether the policy file has changed, and for which answers are remembered at most."""

_MOST_ANSWERS = 20_000

_OF_OTHERS = [entry.name for entry in importlib.metadata.entry_points(group="oslo.policy.rule_checks")]
_MORE_THAN_EQUAL = re.compile(rf"\b({'|'.join(map(re.escape, _OF_OTHERS))}):|%\([^)]*\)[^s]")
"""What makes a rule more than comparisons of whole values: checks that others bring (http), parts of values."""

_ANYBODY_ELSE = "\0"
"""Stands for the values that no rule can tell apart."""

_Stamp = tuple[tuple[str, int, int], ...]


class _Snapshot(policy.Enforcer):
    """The rules as they are when it is made. The library would look at the files at each question."""

    def __init__(self, conf: cfg.ConfigOpts, defaults: Sequence[policy.RuleDefault]) -> None:
        super().__init__(conf)
        self.suppress_default_change_warnings = True
        self.register_defaults(list(defaults))
        super().load_rules()
        self.words = "\n".join(map(str, self.rules.values())).lower()
        self.compares = not _MORE_THAN_EQUAL.search(self.words)

    def load_rules(self, force_reload: bool = False) -> None:
        """Nothing: another snapshot is made when the files change."""


class Enforcer:
    """Answers whether a rule is met.

    :param defaults: see :func:`ingot.api.policy_sample.list_rules`.
    :raises ConfigurationError: the policy file cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts, defaults: Sequence[policy.RuleDefault]) -> None:
        for group, options in opts.list_opts():
            conf.register_opts(options, group=group)
        self._conf = conf
        self._defaults = defaults
        elevated = conf.rbac_service_role_elevated_access
        self._constants = {"config.service_project_name": conf.rbac_service_project_name} if elevated else {}
        self._lock = threading.Lock()
        self._stamp: _Stamp = ()
        self._answers: dict[Hashable, bool] = {}
        self._snapshot = self._read()
        self._looked_at = time.monotonic()

    def met(self, rule: str, facts: Facts, identity: Identity) -> bool:
        """Whether an identity may do what a rule allows.

        A rule that does not exist, and a token of a scope that the rule is not for, is an answer too: no.

        :param facts: about the object, by the names that rules use.
        """
        snapshot, answers = self._current()
        key = (rule, facts, identity.key)
        if key not in answers:
            target = {**identity.values, **self._constants, **dict(facts)}
            answers[key] = bool(snapshot.enforce(rule, target, dict(identity.values)))
        return answers[key]

    def told_apart(self, facts: Facts, identity: Identity) -> Facts:
        """The facts about an object, as far as rules can tell them apart.

        A rule compares them with what is known of who asks, or with its own words. A value that occurs in neither is
        like any other such value: the nodes of a thousand other projects are one question.
        """
        snapshot, _answers = self._current()
        if not snapshot.compares:
            return facts
        words = (identity.words, snapshot.words)
        return tuple(
            (name, value if any(value.lower() in known for known in words) else _ANYBODY_ELSE) for name, value in facts
        )

    @property
    def rules(self) -> policy.Enforcer:
        """The rules as they are now."""
        return self._current()[0]

    def _current(self) -> tuple[_Snapshot, dict[Hashable, bool]]:
        """The rules, and what they have answered: clients ask the same again and again, and the library takes long."""
        if len(self._answers) > _MOST_ANSWERS:
            self._answers = {}
        if time.monotonic() - self._looked_at < LOOKED_FOR_S or not self._lock.acquire(blocking=False):
            return self._snapshot, self._answers
        try:
            self._looked_at = time.monotonic()
            self._answers = {}
            if self._stamp != _stamp(self._conf):
                self._snapshot = self._read()
                LOG.info("The rules of policy were read again")
        except errors.ConfigurationError as exc:
            LOG.error("The rules of policy stay as they were: %s", exc.message)  # noqa: TRY400 - it says it all
        finally:
            self._lock.release()
        return self._snapshot, self._answers

    def _read(self) -> _Snapshot:
        name = self._conf.oslo_policy.policy_file
        if name != DEFAULT_FILE and self._conf.find_file(name) is None:
            raise _unusable(name, "there is no such file")
        self._stamp = _stamp(self._conf)
        try:
            return _Snapshot(self._conf, self._defaults)
        except (cfg.Error, policy.InvalidDefinitionError, AttributeError, TypeError, ValueError) as exc:
            raise _unusable(name, f"{exc}; it maps names of rules to check strings, in YAML") from exc


def _unusable(name: str, why: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(
        option="[oslo_policy] policy_file", value=name, allowed=f"It cannot be used: {why}."
    )


def _stamp(conf: cfg.ConfigOpts) -> _Stamp:
    """What changes when a file of rules does."""
    found = [conf.find_file(name) for name in (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs)]
    stamps = []
    for path in filter(None, found):
        entries = sorted(entry.path for entry in os.scandir(path)) if os.path.isdir(path) else [path]
        for name in entries:
            status = os.stat(name)
            stamps.append((name, status.st_mtime_ns, status.st_size))
    return tuple(stamps)
