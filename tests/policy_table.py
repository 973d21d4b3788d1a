"""What the rules of policy answer: measured of Ironic 39, and computed by Ingot."""

import json
import pathlib

from ingot.api.auth import access, enforcer
from ingot.common import context
from tests import identity_case

MEASURED = json.loads((pathlib.Path(__file__).parent / "measured_policy.json").read_text())
"""By rule: who may, of persons as :mod:`tests.identity_case` has them; what the rules of Ironic 39 answer."""


def identity(person: str) -> enforcer.Identity:
    where, _, role = person.rpartition(" ")
    scope = {"system_scope": "all"} if where == "system" else {"project_id": where, "project_name": where}
    if person == identity_case.ELEVATED:
        scope = {"project_id": "services", "project_name": "service"}
    return identity_with(*identity_case.ROLES[role], **scope)


def identity_with(*roles: str, **values: str) -> enforcer.Identity:
    return enforcer.Identity.from_context(context.RequestContext(roles=list(roles), overwrite=False, **values))


def who_may(rule: str, answers: enforcer.Enforcer) -> str:
    """Return who may do something by a rule, in the form of the measured table."""
    kind = next((kind for kind in ("allocation", "runbook") if f":{kind}:" in rule), "node")
    facts = access.build_target(kind, owner="owner", lessee="lessee" if kind == "node" else None).facts
    found: dict[str, list[str]] = {}
    for person in identity_case.PERSONS:
        if answers.allows(rule, facts, identity(person)):
            where, _, role = person.rpartition(" ")
            found.setdefault(where, []).append(role)
    return " | ".join(f"{where}: {', '.join(roles)}" for where, roles in found.items())
