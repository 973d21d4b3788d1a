"""Nova's ironic driver as ``nova-compute`` uses it: a request a line, an answer a line.

Run in Nova's environment: Ingot's test starts it with Nova's configuration file. Driver, objects and database are
Nova's own; this stands for the compute manager above the driver, which wants a message bus, a scheduler and Placement.
"""

import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from nova import monkey_patch

monkey_patch.patch(backend="threading")  # as nova-compute does, before anything else is imported

from nova import config, context, objects  # noqa: E402
from nova.compute import provider_tree, task_states, vm_states  # noqa: E402
from nova.network import model  # noqa: E402
from nova.objects import image_meta  # noqa: E402
from nova.objects import instance as instances  # noqa: E402
from nova.virt import block_device  # noqa: E402
from nova.virt import driver as virt  # noqa: E402

HOST = "compute-0"


class Compute:
    """What a compute service does with its driver, for one instance."""

    def __init__(self) -> None:
        self.context = context.RequestContext("operator", "project", is_admin=True)
        self.driver = virt.load_compute_driver(None)
        self.network = model.NetworkInfo([])
        self.instance: instances.Instance = None
        self.volumes: list[Any] = []
        self._apart: threading.Thread | None = None
        self._outcome: dict[str, Any] = {}

    def begin(self, vif: str) -> list[str]:
        """Start the service; return the nodes that are there.

        Instances are given an interface.
        """
        address = model.FixedIP(address="192.0.2.77")
        subnet = model.Subnet(
            cidr="192.0.2.0/24", gateway=model.IP("192.0.2.1"), ips=[address], dns=[], routes=[], version=4
        )
        network = model.Network(id="8c1de0a1-0b3a-4e0c-8f0e-6a4d1b1c5f60", label="tenant", subnets=[subnet], mtu=1500)
        self.network = model.NetworkInfo(
            [model.VIF(id=vif, address="fa:16:3e:00:00:01", network=network, type="other", devname="tap0")]
        )
        self.driver.init_host(HOST)
        return list(self.driver.get_available_nodes())

    def report(self, node: str) -> dict[str, Any]:
        """Return what Placement gets about a node."""
        self.driver.get_available_nodes(refresh=True)
        tree = provider_tree.ProviderTree()
        tree.new_root(node, node)
        self.driver.update_provider_tree(tree, node)
        data = tree.data(node)
        return {
            "inventory": data.inventory,
            "traits": sorted(data.traits),
            "resource": self.driver.get_available_resource(node),
        }

    def compute_node(self, node: str) -> int:
        """Create the record of a node in Nova's database, as the resource tracker does."""
        record = objects.ComputeNode(self.context, host=HOST)
        record.update_from_virt_driver({**self.driver.get_available_resource(node), "cpu_info": ""})
        record.create()
        return int(record.id)

    def make(
        self,
        node: str,
        image: str,
        name: str,
        traits: list[str],
        user_data: str,
        more_specs: dict[str, str] | None = None,
        volume: dict[str, Any] | None = None,
    ) -> str:
        """Create an instance in Nova's database, on the node that the scheduler would choose.

        :param more_specs: of the flavor.
        :param volume: that it boots from, as Cinder describes the connection.
        """
        flavor = objects.Flavor(
            self.context,
            flavorid=name,
            name=f"bm.{name}",
            **{"vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap": 0, "rxtx_factor": 1.0},
            extra_specs={
                "resources:CUSTOM_METAL": "1",
                **{f"trait:{trait}": "required" for trait in traits},
                **(more_specs or {}),
            },
        )
        self.instance = objects.Instance(
            self.context,
            **{"user_id": "operator", "project_id": "project", "host": HOST, "node": node, "launch_index": 0},
            **{"display_name": name, "hostname": name, "image_ref": image, "system_metadata": {}, "metadata": {}},
            **{"vm_state": vm_states.BUILDING, "task_state": task_states.SPAWNING},
            **{"user_data": user_data, "config_drive": "True"},
            flavor=flavor,
            keypairs=objects.KeyPairList(objects=[]),
            compute_id=self.compute_node(node),
        )
        self.instance.create()
        self.volumes = self._attach(volume) if volume else []
        return str(self.instance.uuid)

    def _attach(self, volume: dict[str, Any]) -> list[Any]:
        """Return the block devices of an instance that boots from a volume."""
        mapping = objects.BlockDeviceMapping(
            self.context,
            **{"instance_uuid": self.instance.uuid, "source_type": "volume", "destination_type": "volume"},
            **{"boot_index": 0, "device_name": "/dev/sda", "volume_id": volume["id"], "volume_size": 1},
            **{"delete_on_termination": False, "no_device": False, "image_id": None, "snapshot_id": None},
            connection_info=json.dumps({"driver_volume_type": "iscsi", "data": volume["data"]}),
        )
        mapping.create()
        return list(block_device.convert_all_volumes(mapping))

    @property
    def devices(self) -> dict[str, Any]:
        return {"block_device_mapping": self.volumes, "root_device_name": "/dev/sda"} if self.volumes else {}

    def spawn(self) -> None:
        self.driver.prepare_for_spawn(self.instance)
        self.driver.prepare_networks_before_block_device_mapping(self.instance, self.network)
        self.driver.spawn(
            *(self.context, self.instance, self.image, [], "secret", {}),
            network_info=self.network,
            block_device_info=self.devices,
        )
        self.instance.vm_state, self.instance.task_state = vm_states.ACTIVE, None
        self.instance.save()

    def begin_spawn(self) -> None:
        """Begin to spawn on a thread of its own, as a compute service does while it takes other requests."""

        def run() -> None:
            self._outcome = call(self.spawn)

        self._apart = threading.Thread(target=run, daemon=True)
        self._apart.start()

    def end_spawn(self) -> dict[str, Any]:
        """Wait for what :meth:`begin_spawn` has begun, and return its outcome."""
        if self._apart is not None:
            self._apart.join()
        return self._outcome

    def give_up(self) -> None:
        """Clean up after a spawn that did not get as far as the driver."""
        self.driver.failed_spawn_cleanup(self.instance)

    def reserve(self) -> None:
        """Reserve the instance's node as it is known from before, as a service that is late does."""
        node = self.driver._node_from_cache(self.instance.node)
        self.driver._set_instance_id(node, self.instance)

    def unplug(self) -> None:
        """Undo the preparation of networks when the block devices could not be had."""
        self.driver.clean_networks_preparation(self.instance, self.network)

    @property
    def image(self) -> image_meta.ImageMeta:
        return image_meta.ImageMeta.from_instance(self.instance)

    def rebuild(self, preserve_ephemeral: bool = False) -> None:
        self.instance.task_state = task_states.REBUILDING
        self.instance.save()
        self.driver.rebuild(
            *(self.context, self.instance, self.image, [], "secret again", {}, [], None, None),
            network_info=self.network,
            preserve_ephemeral=preserve_ephemeral,
        )
        self.instance.task_state = None
        self.instance.save()

    def power(self, *changes: str) -> list[int]:
        """Change the power several times; return the state after each change."""
        possible: dict[str, Callable[[], None]] = {
            "off": lambda: self.driver.power_off(self.instance),
            "soft off": lambda: self.driver.power_off(self.instance, timeout=20),
            "on": lambda: self.driver.power_on(self.context, self.instance, self.network),
            "reboot": lambda: self.driver.reboot(self.context, self.instance, self.network, "HARD"),
            "soft reboot": lambda: self.driver.reboot(self.context, self.instance, self.network, "SOFT"),
        }
        states = []
        for change in changes:
            possible[change]()
            states.append(self.driver.get_info(self.instance, use_cache=False).state)
        return states

    def known(self) -> dict[str, Any]:
        """Return what the driver knows about its instances."""
        self.driver.get_available_nodes()
        return {
            "exists": self.driver.instance_exists(self.instance),
            "uuids": self.driver.list_instance_uuids(),
            "names": self.driver.list_instances(),
            "state": self.driver.get_info(self.instance).state,
            "connector": self.driver.get_volume_connector(self.instance),
        }

    def nodes(self, *asked: str) -> dict[str, Any]:
        """Return which nodes there are, and of some whether they exist."""
        available = self.driver.get_available_nodes()
        return {
            "available": available,
            "by uuid": self.driver.get_nodenames_by_uuid(),
            "exists": [self.driver.node_is_available(node) for node in asked],
            "deleted": [self.driver.is_node_deleted(node) for node in asked],
            "instances": self.driver.get_num_instances(),
            "binding": self.driver.network_binding_host_id(self.context, self.instance),
        }

    def connector(self) -> dict[str, Any]:
        """Return what Cinder gets of the machine, with the addresses that Nova knows."""
        cache = objects.InstanceInfoCache.get_by_instance_uuid(self.context, self.instance.uuid)
        cache.network_info = self.network
        self.instance.info_cache = cache
        return dict(self.driver.get_volume_connector(self.instance))

    def interfaces(self) -> None:
        """Attach one more interface, and detach it again."""
        (vif,) = self.network
        self.driver.attach_interface(self.context, self.instance, self.image, vif)
        self.driver.detach_interface(self.context, self.instance, vif)

    def rescue(self) -> None:
        self.driver.rescue(self.context, self.instance, self.network, self.image, "password", None, None)

    def unrescue(self) -> None:
        self.driver.unrescue(self.context, self.instance)

    def dump(self) -> None:
        self.driver.trigger_crash_dump(self.instance)

    def serial(self) -> None:
        self.driver.get_serial_console(self.context, self.instance)

    def destroy(self) -> None:
        self.driver.destroy(self.context, self.instance, self.network, self.devices)


def call(what: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return the result of a call, or its error."""
    try:
        return {"result": what(*arguments)}
    except Exception as exc:  # noqa: BLE001 - the test judges it
        traceback.print_exc(limit=-5)
        return {"error": type(exc).__name__, "message": str(exc)}


def main() -> None:
    config.parse_args(sys.argv)
    objects.register_all()
    compute = Compute()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(call(getattr(compute, name), *arguments)), flush=True)


if __name__ == "__main__":
    main()
