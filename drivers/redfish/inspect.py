"""Inspection out of band: the BMC is asked what its machine is made of, in seconds and without booting it."""

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces.inspect import InspectInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import connection, inventory
from ingot.drivers.redfish.base import RedfishInterface

_FACTOR = 4  # times read_timeout: each disk, card and processor is a request


class RedfishInspect(RedfishInterface, InspectInterface):
    """Properties come from what the BMC says; ports, traits and the rest from hooks and rules, as always."""

    def inspect_hardware(self, task: Task) -> None:
        """
        :raises StepFailed: the BMC does not know enough of the machine to deploy it.
        """
        found, plugin_data = connection.call(task, inventory.collect, _FACTOR)
        properties = {**task.node.properties, **_choose_properties(found)}
        if missing := {"memory_mb", "cpu_arch"} - set(properties):
            raise errors.StepFailed(
                f"the BMC does not say {' and '.join(sorted(missing))} of the machine: set them in the node's "
                "properties, or inspect it by the agent"
            )
        task.set(properties=properties)
        task.keep_inventory(found, plugin_data)


def _choose_properties(found: Json) -> Json:
    sizes = [disk["size"] for disk in found["disks"] if disk.get("size")]
    properties = {
        "memory_mb": found["memory"].get("physical_mb"),
        "cpu_arch": found["cpu"].get("architecture"),
        "cpus": found["cpu"].get("count"),
        # Partitions need room, and rounding; so Ironic, too, counts a gigabyte less than the smallest disk has.
        "local_gb": max(min(sizes) // 1024**3 - 1, 0) if sizes else None,
    }
    return {name: value for name, value in properties.items() if value is not None}
