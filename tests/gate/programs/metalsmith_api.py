"""What a program does with metalsmith's Python interface, one command a run; its answer is JSON.

Run in metalsmith's environment: Ingot's test starts it. ``OS_*`` variables say where Ingot is.
"""

import json
import os
import sys
from typing import Any

import metalsmith
from metalsmith import instance_config, sources
from openstack import config

PATIENCE_S = round(60 * float(os.environ.get("INGOT_TEST_PATIENCE", "1")))


def describe(instance: metalsmith.Instance) -> dict[str, Any]:
    """Describe an instance without its addresses: those are Neutron's."""
    return {
        "uuid": instance.uuid,
        "hostname": instance.hostname,
        "state": instance.state.value,
        "healthy": instance.is_healthy,
        "allocation": instance.allocation and instance.allocation.name,
    }


def deploy(api: metalsmith.Provisioner, request: dict[str, Any]) -> dict[str, Any]:
    """Reserve by capability, trait and a condition of its own; deploy; wait."""
    node = api.reserve_node(
        request["resource_class"],
        capabilities=request["capabilities"],
        traits=request["traits"],
        predicate=lambda node: node.name == request["name"],
        hostname=request["hostname"],
    )
    image = sources.HttpWholeDiskImage(request["image"], checksum_url=request["checksums"], disk_format="raw")
    settings = instance_config.CloudInitConfig(ssh_keys=["ssh-ed25519 AAAA operator"])
    settings.add_user("operator", sudo=True)
    begun = describe(api.provision_node(node, image, config=settings))
    (instance,) = api.wait_for_provisioning([node], timeout=PATIENCE_S)
    return {
        "begun": begun,
        "instance": describe(instance),
        "shown": describe(api.show_instance(request["hostname"])),
        "listed": [describe(one) for one in api.list_instances()],
    }


def undeploy(api: metalsmith.Provisioner, request: dict[str, Any]) -> dict[str, Any]:
    node = api.unprovision_node(request["hostname"], wait=PATIENCE_S)
    return {"state": node.provision_state, "listed": [describe(one) for one in api.list_instances()]}


if __name__ == "__main__":
    provisioner = metalsmith.Provisioner(cloud_region=config.get_cloud_region())
    command = {"deploy": deploy, "undeploy": undeploy}[sys.argv[1]]
    json.dump(command(provisioner, json.load(sys.stdin)), sys.stdout)
