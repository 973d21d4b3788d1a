"""The base of hardware types for machines that boot from the network and run the agent."""

from ingot.common import iscsi
from ingot.drivers.agent import autodetect, bootc, custom, deploy, direct, inspect, inspector, raid, rescue
from ingot.drivers.agent.iscsi import IscsiDeploy
from ingot.drivers.ansible.deploy import AnsibleDeploy
from ingot.drivers.cinder.storage import CinderStorage
from ingot.drivers.interfaces import noop
from ingot.drivers.interfaces.hardware_type import AbstractHardwareType, Supported
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.neutron import network
from ingot.drivers.pxe import ipxe, loaders
from ingot.drivers.switch import network as switch_network


class ExternalStorage(StorageInterface):
    """The storage interface ``external``: volumes that are exported elsewhere, which the machine's firmware attaches.

    A node with a volume target of boot index 0 boots from it, and no image is written; any other is deployed to its
    disks.
    """

    def validate(self, task: Task) -> None:
        target = iscsi.boot_target(task.volume_targets)
        if target is not None:
            iscsi.boot_volume(target, task.volume_connectors)

    def attach_volumes(self, task: Task) -> None:
        """Do nothing: the machine is given access where the volumes are exported, and it is revoked there."""

    detach_volumes = attach_volumes

    def should_write_image(self, task: Task) -> bool:
        return iscsi.boot_target(task.volume_targets) is None


class GenericHardwareType(AbstractHardwareType):
    """Machines that boot from the network and run the agent: what nearly all have in common."""

    supported_boot_interfaces: Supported = (ipxe.IPXEBoot, loaders.PXEBoot, loaders.PetitbootBoot)
    supported_deploy_interfaces: Supported = (
        autodetect.AutodetectDeploy,
        direct.DirectDeploy,
        IscsiDeploy,
        AnsibleDeploy,
        deploy.RamdiskDeploy,
        custom.CustomAgentDeploy,
        bootc.BootcDeploy,
    )
    supported_inspect_interfaces: Supported = (inspect.AgentInspect, inspector.InspectorInspect, noop.NoInspect)
    supported_network_interfaces: Supported = (
        network.FlatNetwork,
        network.NeutronNetwork,
        switch_network.SwitchNetwork,
        noop.NoopNetwork,
    )
    # Not every ramdisk can do these: where no default is configured, they are chosen by node.
    supported_raid_interfaces: Supported = (noop.NoRAID, raid.AgentRAID)
    supported_rescue_interfaces: Supported = (noop.NoRescue, rescue.AgentRescue)
    supported_storage_interfaces: Supported = (noop.NoopStorage, ExternalStorage, CinderStorage)
