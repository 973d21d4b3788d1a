"""Deploys and cleans by playbooks, which run over SSH in the ramdisk of the agent.

All else is as in deploy interface ``direct``. The agent says, under its TLS, which host key its machine has, and lets
a key in that was made for one playbook: nothing that listens on the network is believed to be the machine.
"""

import importlib.util
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, later
from ingot.common.steps import StepJson, get_label
from ingot.drivers.agent import booting, session
from ingot.drivers.agent.direct import DirectDeploy
from ingot.drivers.ansible import clean_steps, driver_info
from ingot.drivers.images import instance_image
from ingot.drivers.interfaces import base, children, power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.interfaces.task import Task

if TYPE_CHECKING:
    from ingot.drivers.ansible import access
else:
    access = later.Module("ingot.drivers.ansible.access")  # with cryptography of keys

LOG = log.getLogger(__name__)

_RUNNER = "ingot.drivers.ansible.playbook_runner"
_DEPLOY_PLAYBOOK = "ansible_deploy_playbook"
_PAUSE, _TURN = 2.0, 10.0
_UNTIL = "until"


class AnsibleDeploy(DirectDeploy):
    """The deploy interface ``ansible``.

    :raises ConfigurationError: at the conductor's start, if Ansible is not installed.
    """

    def __init__(self, conf: cfg.ConfigOpts, name: str) -> None:
        super().__init__(conf, name)
        if missing := _find_missing():
            raise errors.ConfigurationError(
                option="enabled_deploy_interfaces",
                value=name,
                allowed=f"It needs {missing} on this conductor's host: pip install 'ingot[ansible]', and OpenSSH.",
            )

    def get_properties(self) -> dict[str, str]:
        return {
            **super().get_properties(),
            "ansible_username": "User of the ramdisk that logs in. Optional.",
            "ansible_key_file": "Path of a private key on the conductor's host. Optional: else one is made.",
            "ansible_python_interpreter": "Path of Python in the ramdisk. Optional.",
            driver_info.PATH: "Directory of playbooks in [ansible] playbooks_path. Optional.",
            **dict.fromkeys(driver_info.FILES, "Name of a file in it. Optional."),
        }

    def validate(self, task: Task) -> None:
        super().validate(task)
        for key in driver_info.FILES:
            driver_info.find_file(task, key)
        _read_clean_steps(task)
        key_file = driver_info.read(task, "ansible_key_file", "default_key_file")
        if key_file and not Path(key_file).is_file():
            raise errors.Invalid(
                field="driver_info.ansible_key_file", value=key_file, allowed="A file on the conductor's host."
            )

    def tear_down(self, task: Task) -> results.Result:
        children.end(task)
        return super().tear_down(task)

    def clean_up(self, task: Task) -> None:
        children.end(task)
        super().clean_up(task)

    def tear_down_cleaning(self, task: Task) -> results.Result:
        children.end(task)
        return super().tear_down_cleaning(task)

    # Deployments

    def _put_image(self, task: Task) -> results.Result:
        """Run the playbook with the image, for which a registry is asked once: it may give a token of its own."""
        child = children.find(task, _RUNNER)
        if child is not None:
            return _watch(task, _DEPLOY_PLAYBOOK, child)
        image = self._examine(task)
        if isinstance(image, results.PollAfter):
            return image
        return _begin(task, _DEPLOY_PLAYBOOK, [], lambda: _build_image_variables(task, image))

    def _find_partitions(self, task: Task) -> Mapping[str, object]:
        """Return nothing: the agent has not written the image, and finds the system partition itself."""
        return {}

    @base.deploy_step(priority=40, idempotent=True)
    def tear_down_agent(self, task: Task) -> results.Result:
        """Switch the machine off by a playbook; if that does not work, cut the power."""
        if not get_interface(task, PowerInterface).sees_changes or task.node.disable_power_off:
            return super().tear_down_agent(task)
        watch = partial(power_control.watch_off, patience=60.0)
        return results.run_phases(task, _shut_down, watch, booting.forget_agent)

    # Cleaning

    def get_clean_steps(self, task: Task) -> list[StepJson]:
        """Return the steps of the operator's file, with the priorities for erasing of [deploy] where they are set."""
        set_ones = {label: int(one) for label, one in self._list_erasing("clean").items() if one is not None}
        listed = [step for step, _ in _read_clean_steps(task).values()]
        return [{**step, "priority": set_ones.get(get_label(step), step["priority"])} for step in listed]

    def get_in_band_steps(self, task: Task, kind: str) -> list[StepJson]:
        """Return the agent's steps but for cleaning, of which the file has all."""
        return [] if kind == "clean" else super().get_in_band_steps(task, kind)

    def execute_clean_step(self, task: Task, step: StepJson) -> results.Answer:
        found = _read_clean_steps(task).get(step["step"])
        if found is None:
            raise errors.StepFailed(
                f"{driver_info.find_file(task, 'ansible_clean_steps_config')} has no step {step['step']} now"
            )
        return _play(task, "ansible_clean_playbook", tags=found[1])


def _find_missing() -> str:
    """Return what of Ansible is not installed."""
    found = {
        "ansible-runner": importlib.util.find_spec("ansible_runner"),
        "ansible-core": importlib.util.find_spec("ansible"),
        "ssh": shutil.which("ssh"),
    }
    return " and ".join(name for name, where in found.items() if where is None)


def _read_clean_steps(task: Task) -> dict[str, tuple[StepJson, list[str]]]:
    return clean_steps.read(driver_info.find_file(task, "ansible_clean_steps_config"))


def _build_image_variables(task: Task, image: instance_image.ReadyImage) -> dict[str, Any]:
    """Return what the playbook that deploys needs, with the config drive."""
    options, info = task.conf.ansible, instance_image.build_image_info(task, image)
    own = {
        key.removeprefix("image_"): value for key, value in task.node.instance_info.items() if key.startswith("image_")
    }
    settings = {
        "cafile": options.image_store_cafile,
        "client_cert": options.image_store_certfile,
        "client_key": options.image_store_keyfile,
        "authorization": image.authorization,
    }
    about = {
        **own,
        "url": info["urls"][0],  # type: ignore[index]
        "disk_format": info["disk_format"],
        "checksum": f"{image.algorithm}:{image.checksum}",
        "validate_certs": not options.image_store_insecure,
        **{key: value for key, value in settings.items() if value},
    }
    hints = task.node.properties.get("root_device")
    variables = {"image": about, **({"root_device_hints": hints} if hints else {})}
    return {"variables": variables, "configdrive": task.configdrive()}


def _play(task: Task, key: str, tags: Sequence[str] = ()) -> results.Result:
    """Run a playbook; to be called again until it answers done.

    :param key: of driver_info that names it.
    :raises StepFailed: it has failed, or took too long; the message names task and reason.
    """
    child = children.find(task, _RUNNER)
    return _begin(task, key, tags) if child is None else _watch(task, key, child)


def _watch(task: Task, key: str, child: children.Child) -> results.Result:
    code = child.poll()
    if code is None:
        return _wait(task, child.said())
    why = child.explain_failure(code) if code else None
    _log_output(task, child.said())
    children.end(task)
    if why is not None:
        raise errors.StepFailed(f"playbook {driver_info.find_file(task, key).name} failed: {why}")
    return results.DONE


def _begin(task: Task, key: str, tags: Sequence[str], build: Callable[[], dict[str, Any]] = dict) -> results.Result:
    """Start a playbook; ``build`` returns more of its job."""
    options, playbook = task.conf.ansible, driver_info.find_file(task, key)

    def begin() -> children.Child:
        way, more = access.open_way(task), build()
        nodes = [
            {
                "name": task.node.uuid,
                "ip": access.find_host(task),
                "user": access.read_user(task),
                "extra": task.node.extra,
            }
        ]
        variables = {"nodes": nodes, "root_device": way.root_device, **more.get("variables", {})}
        job = {
            "project": str(playbook.parent),
            "playbook": playbook.name,
            "tags": tags,
            "host": task.node.uuid,
            "address": access.find_host(task),
            "port": options.ssh_port,
            "username": access.read_user(task),
            "key": way.key,
            "key_file": way.key_file,
            "known_hosts": access.read_known_hosts(task, way),
            "variables": variables,
            "configdrive": more.get("configdrive"),
            "python": driver_info.read(task, "ansible_python_interpreter", "default_python_interpreter"),
            "verbosity": options.verbosity,
            "arguments": options.ansible_extra_args,
            "config_file": options.config_file_path,
        }
        place = Path(task.conf.state_path, "ansible", task.conf.host)
        return children.Child(
            children.run_module(_RUNNER), place, job, children.Limits(options.playbook_timeout, options.memory_limit)
        )

    child = children.start(task, _RUNNER, begin)
    if child is None:
        waits_for = "this conductor runs as many playbooks as it may"
        return results.PollAfter(_TURN, abortable=True, waits_for=waits_for)
    task.memory[_UNTIL] = time.time() + child.limits.seconds
    LOG.info("Node %s: playbook %s begins", task.node.uuid, playbook)
    return _wait(task, [])


def _wait(task: Task, said: list[dict[str, object]]) -> results.PollAfter:
    """Ask again soon; what explains the wait names the task that runs."""
    begun = [line["doing"] for line in said if "doing" in line]
    waits_for = f"Ansible's task: {begun[-1]}" if begun else "Ansible to begin"
    return results.PollAfter(_PAUSE, abortable=True, waits_for=waits_for, until=task.memory.get(_UNTIL))


def _log_output(task: Task, said: list[dict[str, object]]) -> None:
    level = logging.INFO if task.conf.ansible.verbosity else logging.DEBUG
    for line in said:
        if "said" in line:
            LOG.log(level, "Node %s: Ansible: %s", task.node.uuid, line["said"])


def _shut_down(task: Task) -> results.Result:
    """Run the playbook that switches the machine off; whether it works is seen by the machine's power."""
    if not session.is_alive(task):
        return results.DONE
    try:
        return _play(task, "ansible_shutdown_playbook")
    except (errors.StepFailed, errors.AgentError) as exc:
        LOG.warning("Node %s: Ansible does not switch it off, so its BMC does: %s", task.node.uuid, exc)
        return results.DONE
