"""The way to Cinder, by openstacksdk, a library of its own (``pip install ingot[cinder]``).

Volumes are attached by attachments of their own (Cinder's API 3.44): one request reserves the volume and connects it,
and what is left of it after any fault is found by whom it is for.
"""

import json
from typing import TYPE_CHECKING

from oslo_log import log

from ingot.common import clock, errors, later, metrics
from ingot.common.json_types import Json
from ingot.drivers.openstack import service
from ingot.drivers.openstack.service import show

if TYPE_CHECKING:
    import openstack.exceptions as openstack_errors
else:
    openstack_errors = later.Module("openstack.exceptions")

LOG = log.getLogger(__name__)

SERVICE = service.Service(
    name="Cinder",
    group="cinder",
    kind="block-storage",
    requests=metrics.STORAGE_REQUESTS,
    unavailable=errors.StorageServiceUnavailable,
    refused=errors.StorageError,
    as_service=True,  # else Cinder asks Nova whether a server has the volume
)


class Cinder(service.Client):
    """Cinder, for one piece of work."""

    service = SERVICE

    def find_volume(self, ident: str) -> Json | None:
        """Return a volume; None if it is not there.

        :raises IngotError: Cinder does not answer, or refuses; see :meth:`service.Client._ask`, as all methods.
        """
        with self._ask(f"Volume {ident}"):
            try:
                return show([self._proxy.get_volume(ident)])[0]
            except openstack_errors.NotFoundException:
                return None

    def list_attachments(self, instance: str) -> list[Json]:
        """Return the attachments of all volumes for an instance, or what stands in for one."""
        with self._ask(f"Attachments for {instance}"):
            return show(self._proxy.attachments(all_projects=True, instance_id=instance))

    def attach(self, volume: str, instance: str, connector: Json) -> Json:
        """Reserve and connect a volume; return the attachment, which :meth:`complete` ends."""
        with self._ask(f"An attachment of volume {volume}"):
            return show([self._proxy.create_attachment(volume, instance=instance, connector=connector)])[0]

    def complete(self, attachment: Json) -> None:
        """Say that a volume is in use."""
        with self._ask(f"Attachment {attachment['id']} of volume {attachment['volume_id']}"):
            self._proxy.complete_attachment(attachment["id"])

    def detach(self, attachment: Json) -> None:
        """Disconnect a volume and let it go, if that was not done."""
        with self._ask(f"Attachment {attachment['id']} of volume {attachment['volume_id']}"):
            self._proxy.delete_attachment(attachment["id"], ignore_missing=True)

    def note(self, volume: str, node: str, instance: str, action: str) -> None:
        """Note at a volume, for its user, what was last done with it; it does not matter much whether that succeeds."""
        about = {"instance_uuid": instance, "last_seen": clock.iso(clock.now()), "last_action": action}
        try:
            with self._ask(f"Metadata of volume {volume}"):
                self._proxy.set_volume_metadata(volume, **{f"ironic_node_{node}": json.dumps(about)})
        except errors.IngotError as exc:
            LOG.warning("Node %s: it is not noted that volume %s is %s: %s", node, volume, action, exc.message)
