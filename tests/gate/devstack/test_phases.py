"""All phases of DevStack's plugin, and what is there after each."""

import configparser
import shlex
import urllib.error
import urllib.request
from typing import Any

import testtools

from tests.gate import cloud, networking, tempest
from tests.gate.devstack import harness

_TESTS = r"admin\.test_(api_discovery|drivers|chassis|ports\.TestPorts\.test_create)"
"""Tests of the plugin for tempest that show that its configuration is complete: they make nodes, and ask Keystone."""


class PhasesTest(testtools.TestCase):
    """Two conductors, an API, a rack with two machines; Keystone, database and broker are real."""

    def test_a_cloud_is_made_used_and_removed(self) -> None:
        devstack = self.useFixture(harness.DevStack({"INGOT_CONDUCTORS": "2"}))
        self._write_what_tempest_has(devstack)
        devstack.stack()
        api = devstack.connect().baremetal
        self._check_services(devstack, api)
        self._check_catalog(devstack)
        self._check_nodes(api)
        self._deploy(devstack, api)
        self._run_tempest(devstack)
        devstack.unstack()
        self.assertEqual([], devstack.descendants())
        devstack.clean()
        self._check_nothing_is_left(devstack)

    def _check_services(self, devstack: harness.DevStack, api: Any) -> None:
        self.assertEqual({"ir-api", "ir-cond", "ir-cond-2", "ir-rack", "ir-files"}, set(devstack.processes()))
        alive = [one.hostname for one in api.conductors(details=True) if one.alive]
        self.assertEqual(2, len(set(alive)))
        constraints = (devstack.place / "requirements" / "upper-constraints.txt").read_text()
        self.assertEqual("tooz===8.0.0\n", constraints)
        proxy = f"ingot-api http://127.0.0.1:{devstack.port} /baremetal"
        self.assertEqual([proxy], devstack.calls("write_local_proxy_http_config"))

    def _check_catalog(self, devstack: harness.DevStack) -> None:
        identity = devstack.connect().identity
        (service,) = identity.services(type="baremetal")
        endpoints = {one.interface: one.url for one in identity.endpoints(service_id=service.id)}
        url = f"http://127.0.0.1:{devstack.port}"
        self.assertEqual({"public": url, "internal": url, "admin": url}, endpoints)
        user = identity.find_user("ironic", domain_id="default")
        (assignment,) = identity.role_assignments(user_id=user.id, include_names=True)
        self.assertEqual(("service", "service"), (assignment.role["name"], assignment.scope["project"]["name"]))

    def _check_nodes(self, api: Any) -> None:
        nodes = list(api.nodes(details=True))
        self.assertEqual(["machine-0", "machine-1"], sorted(node.name for node in nodes))
        for node in nodes:
            kind = (node.provision_state, node.driver, node.resource_class)
            self.assertEqual(("available", "ipmi", "baremetal"), kind)
            self.assertEqual(["CUSTOM_GOLD"], node.traits)
            self.assertEqual(2, len(list(api.ports(node=node.id))))

    def _deploy(self, devstack: harness.DevStack, api: Any) -> None:
        image = "file://$IRONIC_HTTP_DIR/disk.img"
        load = f"source {harness.environments.ROOT}/devstack/plugin/machines.sh\n"
        devstack.run(f'{load}ingot_machines deploy --node machine-0 --image "{image}"')
        self.assertEqual("active", api.get_node("machine-0").provision_state)
        devstack.run(f"{load}ingot_machines undeploy --node machine-0")
        self.assertEqual("available", api.get_node("machine-0").provision_state)

    def _write_what_tempest_has(self, devstack: harness.DevStack) -> None:
        """Write what DevStack's own configure_tempest does before plugins are called."""
        parser = configparser.RawConfigParser()
        who = cloud.ADMINISTRATOR
        parser.read_dict(
            {
                "oslo_concurrency": {"lock_path": devstack.place / "lock"},
                "DEFAULT": {"log_dir": devstack.place / "logs", "log_file": "tempest.log"},
                "identity": {"uri_v3": devstack.keystone.url, "auth_version": "v3", "region": cloud.REGION},
                "auth": {
                    "use_dynamic_credentials": True,
                    "admin_username": who,
                    "admin_password": cloud.PASSWORD,
                    "admin_project_name": who,
                    "admin_domain_name": "Default",
                },
                "service_available": dict.fromkeys(("nova", "glance", "neutron", "cinder", "swift", "horizon"), False),
            }
        )
        (devstack.place / "logs").mkdir()
        with (devstack.place / "tempest.conf").open("w") as file:
            parser.write(file)

    def _run_tempest(self, devstack: harness.DevStack) -> None:
        programs = harness.environments.cached("tempest", *tempest.REQUIREMENTS)
        workspace = devstack.place / "workspace"
        devstack.run_program(programs / "tempest", "init", workspace)
        command = [programs / "tempest", "run", "--regex", _TESTS, "--concurrency", "2", "--config-file"]
        words = shlex.join(str(word) for word in [*command, devstack.place / "tempest.conf"])
        # stestr would take the Python of the variable for that of the tests.
        script = f"unset PYTHON && cd {workspace} && PATH={programs}:$PATH {words}"
        said = devstack.run_program("bash", "-c", script)
        self.assertRegex(said, r"- Passed: [1-9]\d")
        self.assertIn("- Failed: 0", said)
        self.assertIn("- Skipped: 0", said)

    def _check_nothing_is_left(self, devstack: harness.DevStack) -> None:
        for name in ("etc/ingot", "data/ingot", "apache/ingot-api.conf"):
            self.assertFalse((devstack.place / name).exists(), name)
        with testtools.ExpectedException(urllib.error.URLError):
            urllib.request.urlopen(f"http://127.0.0.1:{devstack.port}", timeout=5)
        self.assertEqual([], list((devstack.place / "data").iterdir()))


class AllInOneTest(testtools.TestCase):
    """API and conductor in one process, machines with Redfish that Neutron moves from network to network."""

    def setUp(self) -> None:
        super().setUp()
        localrc = {
            "INGOT_ALL_IN_ONE": "True",
            "ENABLED_SERVICES": "key,mysql,q-svc",
            "IRONIC_DEPLOY_DRIVER": "redfish",
            "IRONIC_NETWORK_INTERFACE": "neutron",
            "IRONIC_PROVISION_NETWORK_NAME": "agents",
            "PHYSICAL_NETWORK": networking.PHYSICAL_NETWORK,
            "INGOT_SWITCH_INFO": networking.SWITCH,
            "INGOT_SWITCH_ID": networking.SWITCH_MAC,
        }
        self._devstack = self.useFixture(harness.DevStack(localrc, machines=1, with_neutron=True))

    def test_it_serves_without_a_broker_and_on_networks_of_neutron(self) -> None:
        devstack = self._devstack
        devstack.stack()
        self.assertEqual({"ir-api", "ir-rack", "ir-files"}, set(devstack.processes()))
        self.assertEqual([], devstack.calls("iniset_rpc_backend"))
        api = devstack.connect().baremetal
        (node,) = api.nodes(details=True)
        self.assertEqual(("available", "redfish", "neutron"), self._kind(node))
        self._check_networks(api)
        self._deploy_on_a_network_of_the_user(api, node)
        devstack.unstack()
        self.assertEqual([], devstack.descendants())

    def _kind(self, node: Any) -> tuple[str, str, str]:
        return node.provision_state, node.driver, node.network_interface

    def _check_networks(self, api: Any) -> None:
        network = self._devstack.connect("devstack-admin").network
        agents = network.find_network("agents", ignore_missing=False)
        self.assertEqual(("vlan", networking.PHYSICAL_NETWORK),
                         (agents.provider_network_type, agents.provider_physical_network))  # fmt: skip
        links = sorted(port.local_link_connection["port_id"] for port in api.ports(details=True))
        self.assertEqual(["machine-0-0", "machine-0-1"], links)
        log = (self._devstack.place / "units" / "ir-api.log").read_text()
        self.assertIn(agents.id, log)  # cleaned there
        self.assertEqual([], self._devstack.neutron.list_own())

    def _deploy_on_a_network_of_the_user(self, api: Any, node: Any) -> None:
        devstack = self._devstack
        vif = devstack.neutron.create_vif()
        api.attach_vif_to_node(node, vif)
        load = f"source {harness.environments.ROOT}/devstack/plugin/machines.sh\n"
        devstack.run(f'{load}ingot_machines deploy --node machine-0 --image "file://$IRONIC_HTTP_DIR/disk.img"')
        (link,) = devstack.neutron.port(vif)["binding:profile"]["local_link_information"]
        self.assertEqual(networking.SWITCH, link["switch_info"])
        devstack.run(f"{load}ingot_machines undeploy --node machine-0")
        self.assertEqual("", devstack.neutron.port(vif)["device_id"])
        self.assertEqual([], devstack.neutron.list_own())
