"""The rules of policy: their defaults are Ironic's, every route has one, a file changes them."""

import itertools
import pathlib
import time
import uuid

import fixtures
import testtools

from ingot.api import policy_sample, routes
from ingot.api.auth import access, enforcer, rules
from ingot.api.auth import identity as auth
from ingot.common import errors
from ingot.common.conf import opts
from tests import identity_case
from tests.policy_table import MEASURED, identity, identity_with, who_may

PUBLIC = {"baremetal:allocation:create_pre_rbac"}
"""Rules that Ingot has no use for: of the time before there were scopes."""


class PolicyCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.conf = opts.load(["--config-dir", str(self.folder)], prog="ingot-tests", files=[])

    def enforcer(self) -> enforcer.Enforcer:
        return enforcer.Enforcer(self.conf)


class Defaults(PolicyCase):
    def test_each_is_declared_once(self) -> None:
        self.assertEqual(len(rules.EVERY), len(rules.RULES))

    def test_are_those_that_were_measured(self) -> None:
        self.conf.set_override("rbac_service_role_elevated_access", True)
        answers = self.enforcer()
        different = {
            name: (measured, who_may(name, answers))
            for name, measured in MEASURED.items()
            if name in rules.RULES and who_may(name, answers) != measured
        }
        self.assertEqual({}, different)

    def test_have_the_names_that_are_known(self) -> None:
        own = {name for name in rules.RULES if not name.startswith("baremetal:")}
        public = {name for name in MEASURED if ":ipa_" in name}
        self.assertEqual(set(MEASURED) - public - PUBLIC, set(rules.RULES) - own)
        self.assertTrue(all(name.startswith("ingot:") for name in own))

    def test_services_are_only_elevated_when_the_operator_says_so(self) -> None:
        answers = self.enforcer()
        self.assertFalse(answers.allows("baremetal:node:list_all", (), identity(identity_case.ELEVATED)))

    def test_an_unowned_node_does_not_belong_to_a_user_without_a_project(self) -> None:
        without_project = identity_with("admin", "member", "reader")
        self.assertFalse(
            self.enforcer().allows("baremetal:node:get", access.build_target("node", owner=None).facts, without_project)
        )

    def test_an_undeclared_rule_is_refused(self) -> None:
        self.assertFalse(self.enforcer().allows("baremetal:node:paint", (), identity("system admin")))
        self.assertFalse(self.enforcer().allows("", (), identity("system admin")))

    def test_blocks_that_rules_refer_to_exist(self) -> None:
        text = " ".join(
            (*(rule.check for rule in rules.RULES.values()), *(check for check, _about in rules.BLOCKS.values()))
        )
        referred = {word.strip("()").removeprefix("rule:") for word in text.split() if "rule:" in word}
        self.assertEqual(set(), referred - rules.BLOCKS.keys() - rules.RULES.keys())


class Questions(PolicyCase):
    """Facts that no rule can tell apart are asked about once."""

    VALUES = (None, "owner", "lessee", "stranger", "True", "ADMIN", "", "p'q", "p", "Absent", "less", "ee")
    RULES = ("get", "update", "delete", "set_provision_state")
    POLICY = """
"baremetal:node:get": "project_id:%(node.owner)s or 'Absent':%(node.lessee)s or role:%(node.owner)s"
"baremetal:node:update": "not project_id:%(node.owner)s and not 'p''q':%(node.lessee)s"
"baremetal:node:delete": "project_id:%(node.owner)s%(node.lessee)s"
"""

    def persons(self) -> list[enforcer.Identity]:
        named = [identity(person) for person in ("system admin", "owner member", "lessee reader", "stranger none")]
        return [*named, identity_with("ADMIN", project_id="p'q"), identity_with("reader", project_id="lessee")]

    def test_are_answered_as_if_each_were_asked(self) -> None:
        for text in ("{}", self.POLICY):
            (self.folder / "policy.yaml").write_text(text)
            answers = self.enforcer()
            values = itertools.product(self.persons(), self.VALUES, self.VALUES, self.RULES)
            for person, owner, lessee, rule in values:
                facts = access.build_target("node", owner=owner, lessee=lessee).facts
                known, name = answers.reduce_facts(facts, person), f"baremetal:node:{rule}"
                self.assertEqual(
                    answers.allows(name, facts, person), answers.allows(name, known, person), (name, facts, person)
                )

    def test_are_few(self) -> None:
        reader = identity("lessee reader")
        answers = self.enforcer()
        rules = {
            answers.reduce_facts(access.build_target("node", owner=str(uuid.uuid4()), lessee="lessee").facts, reader)
            for _node in range(50)
        }
        self.assertEqual(1, len(rules))

    def test_are_all_asked_of_what_does_more_than_compare(self) -> None:
        strange = access.build_target("node", owner="strange", lessee="other").facts
        for check in ("http://192.0.2.1/%(node.owner)s", "project_id:%(node.owner).3s"):
            (self.folder / "policy.yaml").write_text(f'"baremetal:node:get": "{check}"\n')
            self.assertEqual(strange, self.enforcer().reduce_facts(strange, identity("owner reader")), check)


class Routes(testtools.TestCase):
    def test_every_operation_has_a_rule(self) -> None:
        without = [
            f"{method} {route.path}"
            for route in routes.ROUTES
            for method, operation in route.operations.items()
            if not route.public and operation.rule not in rules.RULES
        ]
        self.assertEqual([], without, "say which in the table of routes, with a rule of api/auth/rules.py")

    def test_every_rule_is_for_a_request(self) -> None:
        used = {operation.rule for route in routes.ROUTES for operation in route.operations.values()}
        self.assertEqual([], [rule.name for rule in rules.RULES.values() if (rule.beside or rule.name) not in used])

    def test_every_rule_is_documented_with_its_requests(self) -> None:
        listed = {rule.name: rule for rule in policy_sample.list_rules()}
        show = listed["baremetal:node:get:last_error"]
        self.assertIn({"method": "GET", "path": "/v1/nodes/{node}"}, show.operations)
        self.assertEqual(set(rules.RULES) | set(rules.BLOCKS), set(listed))


class Files(PolicyCase):
    def write(self, text: str) -> None:
        (self.folder / "policy.yaml").write_text(text)

    def test_change_rules_and_are_read_again(self) -> None:
        self.write('"baremetal:node:create": "role:reader"\n')
        answers = self.enforcer()
        reader = identity("stranger reader")
        self.assertTrue(answers.allows("baremetal:node:create", (), reader))
        self.assertFalse(answers.allows("baremetal:node:delete", (), reader))
        self.write('"baremetal:node:delete": "role:reader"  # and no longer the other\n')
        answers._checked_at -= enforcer.CHECK_INTERVAL_S
        self.assertTrue(answers.allows("baremetal:node:delete", (), reader))
        self.assertFalse(answers.allows("baremetal:node:create", (), reader))

    def test_redefine_what_a_role_is(self) -> None:
        self.write('"system_admin": "role:root"\n')
        self.assertTrue(self.enforcer().allows("baremetal:node:delete", (), identity_with("root", project_id="any")))

    def test_that_cannot_be_used_are_reported_at_the_start(self) -> None:
        for text in ("{", "- a list"):
            self.write(text)
            refusal = self.assertRaises(errors.ConfigurationError, self.enforcer)
            self.assertIn("policy_file", refusal.message)

    def test_that_break_later_change_nothing(self) -> None:
        self.write('"baremetal:node:create": "role:reader"\n')
        answers = self.enforcer()
        self.write("{ broken")
        answers._checked_at = time.monotonic() - enforcer.CHECK_INTERVAL_S
        with fixtures.FakeLogger() as log:
            self.assertTrue(answers.allows("baremetal:node:create", (), identity("stranger reader")))
        self.assertIn("stay as they were", log.output)

    def test_that_are_named_must_exist(self) -> None:
        cfgfile = self.folder / "a.conf"
        cfgfile.write_text("[oslo_policy]\npolicy_file = missing.yaml\n[DEFAULT]\nauth_strategy = keystone\n"
                           "[keystone_authtoken]\nauth_type = none\n")  # fmt: skip
        conf = opts.load(["--config-file", str(cfgfile)], prog="ingot-tests")
        self.assertRaises(errors.ConfigurationError, auth.load_strategy, conf)
