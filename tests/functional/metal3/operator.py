"""An operator of hosts that sends what Metal3's baremetal-operator sends, in its order, at the version that it chooses.

Read in metal3-io/baremetal-operator 02aa505 and gophercloud 2. As that does, it patches only what differs, and takes a
409 for a host that is busy.
"""

import uuid
from collections.abc import Mapping
from typing import Any

import requests

from tests.functional.deployment import lab
from tests.functional.metal3 import schemes

VERSION = "1.110"
HEADERS = {
    "Accept": "application/json",
    "OpenStack-API-Version": f"baremetal {VERSION}",
    "User-Agent": "gophercloud/v2.13.0",
    "X-OpenStack-Ironic-API-Version": VERSION,
}
BOOT_MODE = "boot_mode:uefi"
HASHES = ("image_os_hash_algo", "image_os_hash_value", "image_checksum")


class Host:
    """A host of Metal3's and what its operator does with it; each method waits for what it began."""

    def __init__(self, bench: lab.Lab, index: int, scheme: schemes.Scheme) -> None:
        self.scheme = scheme
        self.name = f"metal3~{scheme.name}"
        self.machine = bench.rack.machines[index]
        self.uid = str(uuid.uuid4())
        self.uuid = ""
        self._bench = bench
        self._access = schemes.read_access(scheme, bench.rack, index)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update(HEADERS)

    def ask(self, method: str, path: str, body: Any = None, allowed: tuple[int, ...] = ()) -> requests.Response:
        """Return an answer; that a host is busy passes.

        :param allowed: statuses beyond those of success.
        """

        def send() -> list[requests.Response]:
            answer = self._session.request(method, f"{self._bench.url}{path}", json=body, timeout=lab.PATIENCE)
            return [] if answer.status_code == requests.codes.conflict else [answer]

        (answer,) = self._bench.eventually(send, f"{self.name}: {method} {path} is not refused as busy")
        if not answer.ok and answer.status_code not in allowed:
            raise AssertionError(f"{method} {path} {body}: {answer.status_code} {answer.text}")
        found: requests.Response = answer
        return found

    @property
    def path(self) -> str:
        return f"/v1/nodes/{self.uuid}"

    def read(self) -> dict[str, Any]:
        node: dict[str, Any] = self.ask("GET", self.path).json()
        return node

    def patch(self, expected: Mapping[str, Any]) -> None:
        """Change what differs.

        :param expected: values by their paths; None: there is to be none.
        """
        node, changes = self.read(), []
        for path, value in expected.items():
            group, _, name = path.strip("/").rpartition("/")
            place = node[group] if group else node
            if value is None and place.get(name) is not None:
                changes.append({"op": "remove", "path": path})
            elif value is not None and place.get(name) != value:
                changes.append({"op": "add", "path": path, "value": value})
        if changes:
            self.ask("PATCH", self.path, changes)

    def order(self, target: str, state: str, **more: Any) -> dict[str, Any]:
        """Send a verb; return the node when it is where it leads."""
        self.ask("PUT", f"{self.path}/states/provision", {"target": target, **more})
        return self.reach(state)

    def reach(self, state: str) -> dict[str, Any]:
        return self._bench.reach(self.uuid, state)

    # What it does with a host, in the order of a host's life

    def register(self, properties: Mapping[str, Any], **more: Any) -> None:
        """Enroll the host and its port, unless they are known; have Ingot verify the access.

        :param more: of the node.
        """
        self._find()
        body = {
            "driver": self.scheme.driver,
            **self.scheme.interfaces,
            "name": self.name,
            "driver_info": self._access,
            "inspect_interface": "agent",
            "disable_power_off": False,
            "properties": dict(properties),
            **more,
        }
        self.uuid = self.ask("POST", "/v1/nodes", body).json()["uuid"]
        known = f"/v1/ports?fields=node_uuid%2Cuuid%2Caddress&node_uuid={self.uuid}"
        assert self.ask("GET", known).json()["ports"] == []
        address = self.machine["macs"][0]
        self.ask("POST", "/v1/ports", {"node_uuid": self.uuid, "address": address, "pxe_enabled": True})
        self.order("manage", "manageable")

    def _find(self) -> None:
        for name in (self.name, self.name.partition("~")[2]):
            assert self.ask("GET", f"/v1/nodes/{name}", allowed=(404,)).status_code == 404
        address = self.machine["macs"][0]
        ports = self.ask("GET", f"/v1/ports?address={address}&fields=node_uuid%2Cuuid%2Caddress").json()["ports"]
        assert ports == []

    def configure(self, deploy_image: Mapping[str, Any], automated_clean: bool) -> None:
        """Say from what the agent boots."""
        names = ("deploy_kernel", "deploy_ramdisk", "deploy_iso", "kernel_append_params")
        image = {f"/driver_info/{name}": deploy_image.get(name) for name in names}
        self.patch({**image, "/automated_clean": automated_clean, **self._capabilities()})

    def _capabilities(self) -> dict[str, Any]:
        kept = str(self.read()["properties"].get("capabilities") or "").split(",")
        others = [one for one in kept if one and not one.startswith(("boot_mode:", "secure_boot:"))]
        return {"/properties/capabilities": ",".join([*others, BOOT_MODE])}

    def inspect(self, interface: str) -> dict[str, Any]:
        """Return what an inspection finds."""
        self.patch({**self._capabilities(), "/inspect_interface": interface})
        self.order("inspect", "manageable")
        found: dict[str, Any] = self.ask("GET", f"{self.path}/inventory").json()
        return found

    def read_settings(self) -> dict[str, dict[str, Any]]:
        listed = self.ask("GET", f"{self.path}/bios?detail=True").json()["bios"]
        return {one["name"]: one for one in listed}

    def read_firmware(self) -> dict[str, dict[str, Any]]:
        listed = self.ask("GET", f"{self.path}/firmware").json()["firmware"]
        return {one["component"]: one for one in listed}

    def clean(self, steps: list[dict[str, Any]], raid_interface: str = "", disks: Any = None) -> dict[str, Any]:
        """Build arrays, apply settings and update firmware of a host that is not provisioned."""
        if disks:
            self.patch({"/raid_interface": raid_interface})
            self.ask("PUT", f"{self.path}/states/raid", {"logical_disks": disks})
        return self.order("clean", "manageable", clean_steps=steps)

    def deploy(
        self, image: Mapping[str, Any], configdrive: Mapping[str, Any], interface: str | None = None,
        steps: list[dict[str, Any]] | None = None, secure: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Provision the host.

        :param interface: the deploy interface; None: the default.
        :param secure: whether its boot mode is UEFISecureBoot.
        """
        names = ("boot_iso", "image_source", "image_disk_format", "image_pull_secret", *HASHES)
        self.patch(
            {
                "/instance_uuid": self.uid,
                "/instance_info/capabilities": {"secure_boot": "true"} if secure else {},
                "/instance_info/root_device": {},
                **{f"/instance_info/{name}": image.get(name) for name in names},
            }
        )
        self._choose_deploy_interface(interface)
        checked = self.ask("GET", f"{self.path}/validate").json()
        problems = {kind: checked[kind]["reason"] for kind in ("boot", "deploy") if not checked[kind]["result"]}
        if problems:
            raise AssertionError(f"{self.name}: {problems}")
        more = {"deploy_steps": steps} if steps else {}
        return self.order("active", "active", configdrive=dict(configdrive), **more)

    def _choose_deploy_interface(self, interface: str | None) -> None:
        found = self.read()["deploy_interface"]
        if interface is not None:
            self.patch({"/deploy_interface": interface})
        elif found in ("ramdisk", "custom-agent"):
            self.ask("PATCH", self.path, [{"op": "remove", "path": "/deploy_interface"}])
        if interface != "custom-agent":
            self.patch({"/driver_info/force_persistent_boot_device": "Default"})

    def attach(self, url: str) -> list[str]:
        """Give a running host a data image; return what is in its drives then."""
        self.ask("POST", f"{self.path}/vmedia", {"device_type": "cdrom", "image_url": url})
        return self.list_inserted()

    def detach(self) -> list[str]:
        self.ask("DELETE", f"{self.path}/vmedia?device_types=cdrom")
        return self.list_inserted()

    def list_inserted(self) -> list[str]:
        return [drive["image"] for drive in self.ask("GET", f"{self.path}/vmedia").json() if drive["inserted"]]

    def subscribe(self, destination: str) -> str:
        """Return the id of a subscription to events of the BMC."""
        body = {"Destination": destination, "Context": "metal3", "HttpHeaders": [{"Authorization": "Bearer x"}]}
        answer = self.ask("POST", f"{self.path}/vendor_passthru?method=create_subscription", body)
        assert answer.status_code == requests.codes.ok, answer.text
        identity: str = answer.json()["Id"]
        return identity

    def unsubscribe(self, identity: str) -> None:
        self.ask("DELETE", f"{self.path}/vendor_passthru?method=delete_subscription", {"id": identity})

    def run(self) -> None:
        """Wait until the host's system has started."""
        self._bench.rack.control.wait_for_state(self.machine["name"], "os")

    def switch(self, target: str, state: str) -> None:
        more = {"timeout": 180} if target == "soft power off" else {}
        self.ask("PUT", f"{self.path}/states/power", {"target": target, **more})

        def reached() -> bool:
            node = self.read()
            return node["power_state"] == state and node["target_power_state"] is None

        self._bench.eventually(reached, f"{self.name}: {state} after {target}")

    def undeploy(self) -> dict[str, Any]:
        return self.order("deleted", "available")

    def forget(self) -> None:
        """Delete the host's node, without its knowledge of what runs there."""
        if self.read()["provision_state"] not in ("available", "manageable", "enroll"):
            self.ask("PUT", f"{self.path}/maintenance", {"reason": "forcing deletion in baremetal-operator"})
        elif self.read()["instance_uuid"]:
            self.patch({"/instance_uuid": None})
        self.ask("DELETE", self.path)
        assert self.ask("GET", self.path, allowed=(404,)).status_code == 404
