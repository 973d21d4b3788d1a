"""Deploys whole-disk images: the agent exports its disk by iSCSI, and the conductor writes to it.

It is for machines that cannot reach where images are. All else is as in deploy interface ``direct``. The agent's
ramdisk needs the extension of ``image/agent-extensions``, as the agent has none for this any more.
"""

import secrets
import time
import urllib.parse
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from oslo_log import log

from ingot.common import errors
from ingot.drivers.agent import answers, client, commands, session
from ingot.drivers.agent.direct import DirectDeploy
from ingot.drivers.images import configdrive, instance_image, sources
from ingot.drivers.interfaces import children, results
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_WRITER = "ingot.drivers.images.disk_writer"
_AUTHORITY = "iqn.2008-10.org.openstack"
_PAUSE = 2.0
_TURN = 10.0
_UNTIL = "until"


class IscsiDeploy(DirectDeploy):
    """The deploy interface ``iscsi``."""

    def tear_down(self, task: Task) -> results.Result:
        children.end(task)
        return super().tear_down(task)

    def clean_up(self, task: Task) -> None:
        children.end(task)
        super().clean_up(task)

    def _put_image(self, task: Task) -> results.Result:
        """Write the image in a process of its own; then the agent adds the config drive.

        It can be repeated from the beginning: a conductor that takes over has the disk exported anew, which ends the
        session of whatever still wrote.
        """
        return results.run_phases(task, self._write, _end_export)

    def _write(self, task: Task) -> results.Result:
        """Start to write, with a registry's token if there is one, and see how that goes."""
        child = children.find(task, _WRITER)
        if child is not None:
            return _watch(task, child)
        image = self._examine(task)
        return image if isinstance(image, results.PollAfter) else _start(task, image)

    def _find_partitions(self, task: Task) -> Mapping[str, object]:
        """Return nothing: the agent has not written the image, and finds the system partition itself."""
        return {}


def _watch(task: Task, child: children.Child) -> results.Result:
    code = child.poll()
    if code is None and not session.is_alive(task):
        children.end(task)
        raise errors.AgentGone(reason="it does not call any more, and its disk was being written")
    if code is None:
        return _wait(task, child.said())
    why = child.explain_failure(code) if code else None
    children.end(task)
    if why is not None:
        raise errors.ImageError(f"the image could not be written by iSCSI: {why}")
    LOG.info("Node %s: its disk has the image", task.node.uuid)
    return results.DONE


def _start(task: Task, image: instance_image.ReadyImage) -> results.Result:
    """Have the disk exported for one session, and start to write."""

    def begin() -> children.Child:
        limits = children.Limits(task.conf.iscsi.write_timeout, task.conf.iscsi.memory_limit)
        place = Path(task.conf.iscsi.images_path, task.conf.host)
        return children.Child(
            children.run_module(_WRITER), place, {**_describe_image(task, image), **_export(task)}, limits
        )

    try:
        child = children.start(task, _WRITER, begin)
    except (errors.AgentBusy, errors.AgentUnreachable) as exc:
        return commands.retry_later(task, exc)
    if child is None:
        waits_for = "this conductor writes as many images by iSCSI as it may"
        return results.PollAfter(_TURN, abortable=True, waits_for=waits_for)
    task.memory.pop(commands.TROUBLE, None)
    task.memory[_UNTIL] = time.time() + child.limits.seconds
    LOG.info("Node %s: the conductor writes the image to its disk by iSCSI", task.node.uuid)
    return _wait(task, [])


def _wait(task: Task, said: list[dict[str, object]]) -> results.PollAfter:
    """Ask again soon; what explains the wait says how far the image is."""
    progress = [line for line in said if "doing" in line]
    so_far = (
        f"the conductor {progress[-1]['doing']}: {progress[-1]['percent']} %"
        if progress
        else "the conductor begins to write"
    )
    return results.PollAfter(_PAUSE, abortable=True, waits_for=f"{so_far} (iSCSI)", until=task.memory.get(_UNTIL))


def _describe_image(task: Task, image: instance_image.ReadyImage) -> dict[str, object]:
    info = instance_image.build_image_info(task, image)
    is_given = image.url is not None or info["urls"] == [image.source]
    networks = task.conf.deploy if is_given else None  # else it is a link of ours
    return {
        "urls": info["urls"],
        "path": str(instance_image.find_local_file(task) or ""),
        "disk_format": image.disk_format,
        "algorithm": image.algorithm,
        "checksum": image.checksum,
        "authorization": image.authorization,
        "verify": sources.read_verify(task.conf, image.source),
        "denied": [str(network) for network in networks.url_denied_networks] if networks else [],
        "allowed": [str(network) for network in networks.url_allowed_networks] if networks else [],
        "sparse": task.conf.iscsi.conv_flags == "sparse",
        "attempts": task.conf.iscsi.verify_attempts,
    }


def _export(task: Task) -> dict[str, object]:
    """Have the agent export its disk to one session with credentials of its own; return what the writer needs."""
    target = f"{_AUTHORITY}:{task.node.uuid}"
    login = {
        "initiator": f"{_AUTHORITY}:conductor-{secrets.token_hex(8)}",
        "username": secrets.token_hex(8),
        "password": secrets.token_urlsafe(24),
    }
    port = task.conf.iscsi.portal_port
    params = {"iqn": target, "portal_port": port, "wipe_disk_metadata": True, **login}
    try:
        client.AgentClient(task).ask_for("iscsi.start_iscsi_target", params, partial(_check_name, target))
    except client.CommandNotFound as exc:
        raise errors.StepFailed(
            "the agent has no extension iscsi: its ramdisk needs ingot-agent-extensions, or use deploy interface "
            f"direct ({exc.message})"
        ) from exc
    host = str(urllib.parse.urlsplit(str(task.node.agent_url)).hostname)
    return {"portal": f"[{host}]:{port}" if ":" in host else f"{host}:{port}", "target": target, **login}


def _check_name(target: str, answer: object) -> None:
    """Check that the agent exports what was asked for: a name of its own could lead to another's disk."""
    name = answers.read_object("result", answer).get("iscsi_target_iqn")
    if name != target:
        raise answers.Malformed("iscsi_target_iqn", name, f"it must be {target}")


def _end_export(task: Task) -> results.Result:
    """Have the agent end the export, look at its disk anew, and add the config drive."""

    def build_params() -> dict[str, object]:
        return {"node_uuid": task.node.uuid, "configdrive": configdrive.read(task)}

    return commands.run(task, "iscsi.stop_iscsi_target", build_params)
