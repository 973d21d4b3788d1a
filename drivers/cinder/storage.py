"""The storage interface ``cinder``: volumes of Cinder, attached for as long as an instance is on the machine.

As what Cinder knows the machine, the instance or else the node, is noted before the first volume is attached, and
forgotten when none is left: whatever dies in between, all attachments are found by that.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from oslo_log import log

from ingot.common import context, errors, iscsi
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.db import models
from ingot.drivers.cinder import connection, connectors
from ingot.drivers.cinder.connection import Cinder
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_INSTANCE: Final = "cinder_instance"
"""Key of ``driver_internal_info``: as what Cinder knows the machine, while volumes may be attached to it."""

_REFUSALS = "refusals"
"""Key of ``task.memory``: how often Cinder has refused to let the volumes go."""

_READ_ALL = frozenset(("admin", "service"))
"""Roles with which Cinder itself shows volumes of other projects."""

_PROJECT = "os-vol-tenant-attr:tenant_id"

_CONNECTED = frozenset(("attaching", "attached"))


class CinderStorage(StorageInterface):
    """The storage interface ``cinder``."""

    def check_enabled(self, enabled: Mapping[str, BaseInterface]) -> None:
        connection.SERVICE.check(self.conf, f"storage interface {self.name}")

    def validate(self, task: Task) -> None:
        connectors.check(task)
        self._check_owner(task, task.volume_targets)

    def should_write_image(self, task: Task) -> bool:
        return iscsi.boot_target(task.volume_targets) is None

    def boots_by_loader(self, task: Task) -> bool:
        """Return whether iPXE attaches the volume; firmware of Fibre Channel adapters does that itself."""
        target = iscsi.boot_target(task.volume_targets)
        return target is not None and target.volume_type == iscsi.PROTOCOL

    def open(self, ctx: context.RequestContext) -> Cinder:
        """Return Cinder as it is asked for a request."""
        return Cinder(self.conf, lambda: self._connection, ctx)

    @functools.cached_property
    def _connection(self) -> Any:
        return connection.SERVICE.connect(self.conf)

    def _check_owner(self, task: Task, targets: Iterable[models.VolumeTarget]) -> None:
        """Refuse volumes that the requester may not use: the user with which Ingot asks Cinder sees those of all.

        :raises Invalid: a volume is not there, or another project's.
        """
        project, roles = task.context.project_id, task.context.roles
        if project is None:  # a conductor's own context, in which accepted work goes on
            asked_by = task.node.request.get("asked_by") or {}
            project, roles = asked_by.get("project"), asked_by.get("roles", [])
        if project is None or _READ_ALL & set(roles):
            return
        cinder = self.open(task.context)
        for target in targets:
            volume = cinder.find_volume(target.volume_id)
            if volume is None or volume.get(_PROJECT) != project:
                allowed = "Cinder has no volume with this uuid that you may use."
                field = f"volume_id of volume target {target.uuid}"
                raise errors.Invalid(field=field, value=target.volume_id, allowed=allowed)

    # Attaching

    def attach_volumes(self, task: Task) -> None:
        """Attach all volumes, or none of those that were not attached before; what is attached already stays."""
        targets = task.volume_targets
        if not targets:
            return
        self._check_owner(task, targets)
        connector, cinder = connectors.build(task), self.open(task.context)
        instance = task.node.instance_uuid or task.node.uuid
        _note(task, instance)
        task.save()  # before anything is attached
        known = {one["volume_id"]: one for one in cinder.list_attachments(instance)}
        made: list[Json] = []
        try:
            found = {
                target.uuid: _attach(cinder, target.volume_id, instance, connector, known.get(target.volume_id), made)
                for target in targets
            }
        except errors.IngotError:
            _undo(task, cinder, instance, made, known)
            raise
        for one in made:
            cinder.note(one["volume_id"], task.node.uuid, instance, "attached")
        task.keep_volume_properties(found)
        LOG.info("Node %s: volumes of Cinder attached: %s", task.node.uuid, ", ".join(one.volume_id for one in targets))

    # Detaching

    def detach_volumes(self, task: Task) -> Answer:
        """Detach all volumes."""
        if not task.volume_targets and _INSTANCE not in task.node.driver_internal_info:
            return results.DONE
        try:
            self._detach_all(task)
        except errors.StorageError as exc:
            count = task.memory[_REFUSALS] = task.memory.get(_REFUSALS, 0) + 1
            if count > self.conf.cinder.action_retries:
                raise
            LOG.warning("Node %s: its volumes are not detached yet: %s", task.node.uuid, exc.message)
            return results.PollAfter(self.conf.cinder.action_retry_interval, waits_for=Wait.STORAGE_SERVICE)
        task.memory.pop(_REFUSALS, None)
        _note(task, None)
        return results.DONE

    def _detach_all(self, task: Task) -> None:
        cinder, node = self.open(task.context), task.node
        noted = node.driver_internal_info.get(_INSTANCE)
        for instance in dict.fromkeys(one for one in (noted, node.instance_uuid, node.uuid) if one):
            for attachment in cinder.list_attachments(instance):
                cinder.detach(attachment)
                LOG.info("Node %s: volume %s is detached", node.uuid, attachment["volume_id"])
                cinder.note(attachment["volume_id"], node.uuid, instance, "detached")


def _note(task: Task, instance: str | None) -> None:
    left = {key: value for key, value in task.node.driver_internal_info.items() if key != _INSTANCE}
    task.set(driver_internal_info=left if instance is None else {**left, _INSTANCE: instance})


def _attach(cinder: Cinder, volume: str, instance: str, connector: Json, known: Json | None, made: list[Json]) -> Json:
    """Attach a volume; return the properties of its connection.

    :param known: its attachment, if there is one.
    :param made: gets the attachment that is made.
    """
    if known is not None and not (known["connection_info"] and known["status"] in _CONNECTED):
        cinder.detach(known)  # a reservation without a connection, or one that has failed
        known = None
    attachment = known
    if attachment is None:
        attachment = cinder.attach(volume, instance, connector)
        made.append(attachment)
    if attachment["status"] != "attached":
        cinder.complete(attachment)
    properties: Json = dict(attachment["connection_info"])
    properties.pop("driver_volume_type", None)
    return {**properties, "volume_id": volume, "ironic_volume_uuid": volume}


def _undo(task: Task, cinder: Cinder, instance: str, made: Iterable[Json], known: Iterable[str]) -> None:
    """Detach what was attached just now, also what Cinder did not live to say; the rest is done at the tear-down."""
    try:
        for attachment in made:
            cinder.detach(attachment)
        volumes = {target.volume_id for target in task.volume_targets} - set(known)
        for attachment in cinder.list_attachments(instance):
            if attachment["volume_id"] in volumes:
                cinder.detach(attachment)
    except errors.IngotError as also:
        LOG.warning("Node %s: volumes may stay attached until its tear-down: %s", task.node.uuid, also.message)
