"""Fill the database of a real Ironic, by its own objects and models: ``fleet.py CONFIG NODES``.

It runs in the environment that has Ironic. Each state is that of some nodes, and each kind of row is there.
"""

import datetime
import sys
import uuid
from typing import Any

from ironic import objects
from ironic.common import context, states
from ironic.conf import CONF
from ironic.db.sqlalchemy import models
from oslo_db.sqlalchemy import enginefacade

NAMESPACE = uuid.UUID("6d7076f2-5b9d-4a33-8d0e-3a1e4c1f7d11")

STATES = (
    *(states.ENROLL, states.VERIFYING, states.MANAGEABLE, states.AVAILABLE, states.ACTIVE, states.ERROR),
    *(states.DEPLOYING, states.DEPLOYWAIT, states.DEPLOYFAIL, states.DEPLOYHOLD),
    *(states.CLEANING, states.CLEANWAIT, states.CLEANFAIL, states.CLEANHOLD, states.DELETING),
    *(states.INSPECTING, states.INSPECTWAIT, states.INSPECTFAIL, states.ADOPTING, states.ADOPTFAIL),
    *(states.RESCUE, states.RESCUING, states.RESCUEWAIT, states.RESCUEFAIL, states.UNRESCUING, states.UNRESCUEFAIL),
    *(states.SERVICING, states.SERVICEWAIT, states.SERVICEFAIL, states.SERVICEHOLD),
)
WAITING = (states.DEPLOYWAIT, states.CLEANWAIT, states.INSPECTWAIT, states.RESCUEWAIT, states.SERVICEWAIT)
WITH_INSTANCE = (states.ACTIVE, states.RESCUE, states.DEPLOYWAIT, states.DEPLOYFAIL)
ALL_OF = 120
"""So many nodes are written by Ironic's objects, and have something of each kind. The others, with a port each, are
written by its models at once, as objects take long."""

MOMENT = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.UTC)
STEP = {"interface": "bios", "step": "apply_configuration", "args": {"settings": []}}


def ident(*parts: object) -> str:
    """Return the same uuid for the same thing each time."""
    return str(uuid.uuid5(NAMESPACE, " ".join(map(str, parts))))


def create(kind: type[Any], **fields: Any) -> Any:
    """Create a row of a kind."""
    made = kind(context.get_admin_context(), **fields)
    made.create()
    return made


def describe_node(number: int, chassis: Any) -> dict[str, Any]:
    """Return the fields of a node, in the state whose turn it is."""
    state = STATES[number % len(STATES)]
    fields: dict[str, Any] = {"instance_info": {}, "driver_internal_info": {}}
    if state in WITH_INSTANCE:
        fields["instance_info"] = {"image_source": f"http://images/{number}.qcow2", "configdrive": "H4sIAA=="}
        fields |= {"instance_uuid": ident("instance", number), "instance_name": f"instance-{number}"}
    if state in WAITING:
        fields["driver_internal_info"] = {
            **{"agent_secret_token": f"token-{number}", "agent_url": f"http://192.0.2.{number % 250}:9999"},
            **{"agent_version": "11.7.0", "agent_last_heartbeat": "2026-03-01T12:00:00.123456"},
        }
    if state in (states.CLEANFAIL, states.SERVICEFAIL):
        fields |= {"maintenance": True, "fault": "clean failure", "maintenance_reason": "a step failed"}
    return {
        "uuid": ident("node", number),
        "name": f"fleet-{number}",
        "driver": "ipmi" if number % 20 == 0 else "fake-hardware",
        "driver_info": {"ipmi_address": f"192.0.2.{number % 250}", "ipmi_password": f"pw-{number}"},
        "properties": {"cpus": 4, "memory_mb": 8192, "cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
        "extra": {"rack": number % 40, "ü": "ß"},
        "resource_class": "baremetal",
        "chassis_id": chassis.id if number % 3 == 0 else None,
        "conductor_group": "rack-1" if number % 5 == 0 else "",
        "owner": ident("project", number % 7).replace("-", ""),
        "description": f"Machine number {number}",
        "network_interface": "flat" if number % 10 == 0 else "noop",
        "provision_state": state,
        "target_provision_state": states.ACTIVE if state == states.DEPLOYWAIT else states.NOSTATE,
        "provision_updated_at": MOMENT,
        "power_state": states.POWER_ON if number % 4 else states.POWER_OFF,
        "target_power_state": states.POWER_ON if state == states.DEPLOYING else None,
        "reservation": "conductor-of-yesterday" if state == states.CLEANING else None,
        "shard": f"shard-{number % 3}",
        **fields,
    }


def describe_port(number: int) -> dict[str, Any]:
    """Return the fields of the first port of a node."""
    address = f"52:54:0b:00:{number // 256:02x}:{number % 256:02x}"
    return {"uuid": ident("port", number), "address": address, "physical_network": "provision", "pxe_enabled": True}


def add_node(number: int, chassis: Any) -> None:
    """Create a node with something of each kind."""
    node = create(objects.Node, **describe_node(number, chassis))
    create(objects.Port, node_id=node.id, **describe_port(number))
    add_belongings(number, node)
    if node.provision_state == states.ACTIVE:
        allocate(number, node)


def add_many(numbers: range, chassis: Any) -> None:
    """Create nodes with a port each, in one transaction."""
    with enginefacade.writer.using(context.get_admin_context()) as session:
        for number in numbers:
            node = models.Node(**describe_node(number, chassis), version=objects.Node.VERSION)
            session.add(node)
            session.flush()
            session.add(models.Port(node_id=node.id, **describe_port(number), version=objects.Port.VERSION))


def add_belongings(number: int, node: Any) -> None:
    """Create what belongs to a node."""
    objects.TraitList.create(node._context, node.id, ["CUSTOM_GPU", f"CUSTOM_RACK_{number % 40}"])
    group = None
    if number % 4 == 0:
        group = create(
            objects.Portgroup, uuid=ident("group", number), node_id=node.id, name=f"bond-{number}", mode="802.3ad",
            address=f"52:54:0a:00:{number // 256:02x}:{number % 256:02x}", properties={"miimon": "100"},
        )  # fmt: skip
    create(
        objects.Port, uuid=ident("port", number, "second"), node_id=node.id, pxe_enabled=False,
        address=f"52:54:0c:00:{number // 256:02x}:{number % 256:02x}", portgroup_id=group.id if group else None,
        local_link_connection={"switch_id": "00:00:00:00:00:01", "port_id": "eth1"},
    )  # fmt: skip
    objects.BIOSSettingList.create(
        node._context, node.id, [{"name": "virtualization", "value": "on"}, {"name": "hyperthread", "value": "off"}]
    )
    create(
        objects.FirmwareComponent, node_id=node.id, component="bmc", initial_version="1.0", current_version="1.1",
    )  # fmt: skip
    create(
        objects.NodeHistory, node_id=node.id, conductor="conductor-1", event="Deploy failed", severity="ERROR",
        event_type="provisioning", user=ident("user"),
    )  # fmt: skip
    create(
        objects.NodeInventory, node_id=node.id, plugin_data={"root_disk": {"name": "/dev/sda"}},
        inventory_data={"cpu": {"count": 4}, "disks": [{"name": f"/dev/sd{disk}"} for disk in "ab"], "pad": "x" * 4000},
    )  # fmt: skip
    if number % 8 == 0:
        create(
            objects.VolumeConnector, uuid=ident("connector", number), node_id=node.id, type="iqn",
            connector_id=f"iqn.2026-01.org.example:{number}",
        )  # fmt: skip
        create(
            objects.VolumeTarget, uuid=ident("target", number), node_id=node.id, boot_index=0, volume_type="iscsi",
            volume_id=ident("volume", number), properties={"target_lun": 0, "auth_password": "s3cret"},
        )  # fmt: skip


def add_site() -> Any:
    """Create what belongs to no node."""
    create(objects.DeployTemplate, uuid=ident("template"), name="CUSTOM_BIOS", steps=[{**STEP, "priority": 150}])
    create(
        objects.Runbook, uuid=ident("runbook"), name="CUSTOM_UPDATE", public=True, steps=[{**STEP, "order": 1}],
        traits=["CUSTOM_GPU"], description="Updates",
    )  # fmt: skip
    create(
        objects.InspectionRule, uuid=ident("rule"), description="Vendors", priority=10, phase="main", sensitive=False,
        conditions=[{"op": "eq", "args": {"values": ["{inventory[cpu][count]}", 4]}}],
        actions=[{"op": "set-attribute", "args": {"path": "/extra/cpus", "value": 4}}],
    )  # fmt: skip
    return create(objects.Chassis, uuid=ident("chassis"), description="Rack 1", extra={"row": 3})


def allocate(number: int, node: Any) -> None:
    """Give an active node to an allocation, as its user had asked for it."""
    made = create(
        objects.Allocation, uuid=node.instance_uuid, name=f"allocation-{number}", resource_class="baremetal",
        traits=["CUSTOM_GPU"], candidate_nodes=[node.uuid], owner=node.owner,
    )  # fmt: skip
    made.node_id, made.state = node.id, "active"
    made.save()
    node.allocation_id = made.id
    node.save()


def main() -> None:
    """Fill the database."""
    CONF(["--config-file", sys.argv[1]], project="ironic")
    objects.register_all()
    chassis = add_site()
    total = int(sys.argv[2])
    for number in range(min(total, ALL_OF)):
        add_node(number, chassis)
    add_many(range(ALL_OF, total), chassis)


if __name__ == "__main__":
    main()
