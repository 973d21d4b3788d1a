"""The rules with the requests that each is for: what is enforced, and what the sample of a policy file is made from."""

import re
from collections.abc import Iterator
from typing import Any

from oslo_policy import policy

from ingot.api import routes
from ingot.api.auth import enforcer, rules
from ingot.common.conf import loader


def list_rules() -> list[policy.RuleDefault]:
    """All rules with their defaults: the entry point oslo.policy.policies."""
    blocks = [policy.RuleDefault(name, check, about) for name, (check, about) in rules.WHO.items()]
    used: dict[str, list[Any]] = {}
    for rule, operation in _operations():
        used.setdefault(rule, []).append(operation)
    return [*blocks, *(_documented(rule, used) for rule in rules.RULES.values())]


def get_enforcer() -> policy.Enforcer:
    """The rules in force by the configuration of ingot-api, for the commands of oslo.policy."""
    return enforcer.Enforcer(loader.load([], prog="ingot-api"), list_rules()).rules


def _operations() -> Iterator[tuple[str, dict[str, str]]]:
    for route in routes.ROUTES:
        path = re.sub(r"<(\w+)>", r"{\1}", route.path)
        for method in route.operations:
            if rule := route.rule(method):
                yield rule, {"method": method, "path": path}


def _documented(rule: rules.Rule, used: dict[str, list[Any]]) -> policy.RuleDefault:
    operations = used[rule.beside or rule.name]
    return policy.DocumentedRuleDefault(rule.name, rule.check, rule.about, operations, scope_types=list(rule.scopes))
