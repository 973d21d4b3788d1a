"""Exports the disk that a system is written to, by the kernel's iSCSI target (LIO).

One initiator gets in, with a name and a password that were made for this export. A new export ends the one before,
and with it the session of whatever still wrote.
"""

import os

import rtslib_fb
from ironic_python_agent import disk_utils, errors, hardware, partition_utils, utils
from ironic_python_agent.extensions import base
from oslo_log import log

LOG = log.getLogger(__name__)

_FABRIC = "iscsi"
_STORAGE = "ingot"
_STATE = ("/etc/rtslib-fb-target", "/etc/target")
"""Where rtslib has the kernel keep reservations: Debian's name and that of others. Its service would make it."""

_LUN = 1
"""Targets of other kinds (tgt) have themselves as 0."""

_EVERY_ADDRESS = ("[::0]", "0.0.0.0")  # noqa: S104 - credentials guard it
"""As IPv6, which takes IPv4 along; and for a kernel without it. An address of its own may be one of a router."""

_SHORTEST_PASSWORD = 12


class IscsiExtension(base.BaseAgentExtension):
    """The commands ``iscsi.*``."""

    @base.sync_command("start_iscsi_target")
    def start_iscsi_target(
        self,
        iqn=None,
        portal_port=None,
        wipe_disk_metadata=False,
        initiator=None,
        username=None,
        password=None,
    ):
        """Export the disk to one initiator with these credentials.

        :raises InvalidCommandParamsError: a parameter is missing.
        :raises CommandExecutionError: the kernel refuses.
        """
        needed = {"iqn": iqn, "initiator": initiator, "username": username, "password": password}
        lacking = ", ".join(name for name, value in needed.items() if not value)
        if not lacking and len(password) < _SHORTEST_PASSWORD:
            lacking = f"a password of at least {_SHORTEST_PASSWORD} characters"
        if lacking:
            raise errors.InvalidCommandParamsError(f"start_iscsi_target needs {lacking}")
        device = hardware.dispatch_to_managers("get_os_install_device", permit_refresh=True)
        try:
            _end()
            if wipe_disk_metadata:
                disk_utils.destroy_disk_metadata(device, "")
            self._export(device, iqn, int(portal_port or 3260), (initiator, username, password))
        except (rtslib_fb.RTSLibError, OSError) as exc:
            raise errors.CommandExecutionError(f"{device} cannot be exported: {exc}") from exc
        LOG.info("%s is exported to %s as %s", device, initiator, iqn)
        return {"iscsi_target_iqn": iqn}

    def _export(self, device, iqn, port, user):
        initiator, username, password = user
        storage = rtslib_fb.BlockStorageObject(_STORAGE, dev=device)
        group = rtslib_fb.TPG(rtslib_fb.Target(rtslib_fb.FabricModule(_FABRIC), iqn), 1)
        group.set_attribute("authentication", "1")
        group.set_attribute("generate_node_acls", "0")
        group.set_attribute("demo_mode_write_protect", "1")
        lun = rtslib_fb.LUN(group, _LUN, storage)
        permit = rtslib_fb.NodeACL(group, initiator)
        permit.chap_userid, permit.chap_password = username, password
        rtslib_fb.MappedLUN(permit, _LUN, lun)
        _listen(group, port)
        group.enable = True  # last: who may get in is known by now

    @base.async_command("stop_iscsi_target")
    def stop_iscsi_target(self, node_uuid=None, configdrive=None):
        """End the export, make the kernel see what is on the disk, and add a config drive.

        :param configdrive: as ``standby.prepare_image`` takes it.
        """
        _end()
        device = hardware.dispatch_to_managers("get_os_install_device")
        # The image came past the kernel's memory of the disk.
        utils.execute("blockdev", "--flushbufs", device)
        utils.execute("partx", "--update", device, check_exit_code=[0, 1])
        utils.execute("udevadm", "settle")
        disk_utils.fix_gpt_partition(device, node_uuid)
        if configdrive is not None:
            partition_utils.create_config_drive_partition(node_uuid or "local", device, configdrive)
        return f"{device} is not exported any more"


def _listen(group, port):
    first, second = _EVERY_ADDRESS
    try:
        rtslib_fb.NetworkPortal(group, first, port)
    except rtslib_fb.RTSLibError:
        rtslib_fb.NetworkPortal(group, second, port)


def _end():
    """End whatever is exported; sessions end with it."""
    for place in _STATE:
        os.makedirs(place, exist_ok=True)
    root = rtslib_fb.RTSRoot()
    for target in root.targets:
        for group in target.tpgs:
            group.enable = False
        target.delete()
    for storage in root.storage_objects:
        storage.delete()
