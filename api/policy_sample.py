"""The rules of policy with the requests that each is for, as the commands of oslo.policy show them."""

from oslo_policy import policy

from ingot.api import routes
from ingot.api.auth import enforcer, rules
from ingot.api.web import description
from ingot.common.conf import opts


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults: the entry point oslo.policy.policies."""
    blocks = [policy.RuleDefault(name, check, about) for name, (check, about) in rules.BLOCKS.items()]
    requests: dict[str, list[policy.Operation]] = {}
    for route in routes.ROUTES:
        for method, operation in route.operations.items():
            request: policy.Operation = {"method": method, "path": description.template_path(route.path)}
            requests.setdefault(operation.rule, []).append(request)
    documented = (
        policy.DocumentedRuleDefault(
            rule.name, rule.check, rule.about, requests[rule.beside or rule.name], scope_types=list(rule.scopes)
        )
        for rule in rules.RULES.values()
    )
    return [*blocks, *documented]


def get_enforcer() -> policy.Enforcer:
    """Return the rules in force by the configuration of ingot-api, for the commands of oslo.policy."""
    return enforcer.Enforcer(opts.load([], prog="ingot-api")).rules
