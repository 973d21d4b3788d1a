"""The rules in force: the defaults of :mod:`ingot.api.auth.rules`, with what the operator's policy file changes."""

import importlib.metadata
import os
import re
import threading
import time
from collections.abc import Hashable

from oslo_config import cfg
from oslo_log import log
from oslo_policy import opts, policy

from ingot.api.auth import rules
from ingot.api.auth.access import Facts, Identity
from ingot.common import errors

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


class _Snapshot(policy.Enforcer):
    """The rules at one moment. The library would check the files at each question."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self.suppress_default_change_warnings = True
        self.register_defaults(
            [policy.RuleDefault(name, check, about) for name, (check, about) in rules.BLOCKS.items()]
        )
        self.register_defaults(
            [
                policy.RuleDefault(rule.name, rule.check, rule.about, scope_types=list(rule.scopes))
                for rule in rules.RULES.values()
            ]
        )
        super().load_rules()
        self.words = "\n".join(map(str, self.rules.values())).lower()
        self.compares = not _MORE_THAN_EQUAL.search(self.words)

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
        self._answers: dict[Hashable, bool] = {}
        self._snapshot = self._read()
        self._checked_at = time.monotonic()

    def allows(self, rule: str, facts: Facts, identity: Identity) -> bool:
        """Return whether an identity may do what a rule allows.

        A rule that does not exist, and a token of a scope that the rule is not for, is an answer too: no.

        :param facts: about the object, by the names that rules use.
        """
        snapshot, answers = self._read_current()
        key = (rule, facts, identity.key)
        if key not in answers:
            target = {**identity.values, **self._constants, **dict(facts)}
            answers[key] = bool(snapshot.enforce(rule, target, dict(identity.values)))
        return answers[key]

    def reduce_facts(self, facts: Facts, identity: Identity) -> Facts:
        """Return the facts about an object, as far as rules can distinguish them.

        A rule compares them with what is known of the user, or with its own words. A value that occurs in neither is
        like any other such value: the nodes of a thousand other projects are one question.
        """
        snapshot, _answers = self._read_current()
        if not snapshot.compares:
            return facts
        words = (identity.words, snapshot.words)
        return tuple(
            (name, value if any(value.lower() in known for known in words) else _OTHER) for name, value in facts
        )

    @property
    def rules(self) -> policy.Enforcer:
        """The rules at this moment."""
        return self._read_current()[0]

    def _read_current(self) -> tuple[_Snapshot, dict[Hashable, bool]]:
        """Return the rules and their answers: the same is checked again and again, and the library is slow."""
        if len(self._answers) > _MOST_ANSWERS:
            self._answers = {}
        if time.monotonic() - self._checked_at < CHECK_INTERVAL_S or not self._lock.acquire(blocking=False):
            return self._snapshot, self._answers
        try:
            self._checked_at = time.monotonic()
            self._answers = {}
            if self._stamp != _read_stamp(self._conf):
                self._snapshot = self._read()
                LOG.info("Policy rules were read again")
        except errors.ConfigurationError as exc:
            LOG.error("Policy rules stay as they were: %s", exc.message)  # noqa: TRY400 - the message is complete
        finally:
            self._lock.release()
        return self._snapshot, self._answers

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
    found = [conf.find_file(name) for name in (conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs)]
    stamps = []
    for path in filter(None, found):
        entries = sorted(entry.path for entry in os.scandir(path)) if os.path.isdir(path) else [path]
        for name in entries:
            status = os.stat(name)
            stamps.append((name, status.st_mtime_ns, status.st_size))
    return tuple(stamps)
