"""The deploy interface ``bootc``: the agent runs a container, whose own ``bootc`` installs its system on the disk.

The agent pulls the container from its registry itself, so the conductor does not ask that. The rest is as with
``custom-agent``.
"""

from ingot.common import errors
from ingot.db import models
from ingot.drivers.agent import commands
from ingot.drivers.agent.custom import CustomAgentDeploy, uses_agent
from ingot.drivers.images import configdrive, oci, sources
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.task import Task

_STEP = "execute_bootc_install"
_FIELD = "instance_info.image_source"
_KEYS = ("image_disk_format", "image_type")


class BootcDeploy(CustomAgentDeploy):
    """The deploy interface ``bootc``."""

    keeps_drive_parts = False

    def get_properties(self) -> dict[str, str]:
        return {
            **super().get_properties(),
            sources.PULL_SECRET: "Secret of the registry: user:password, the same in base64, or a token. Optional.",
        }

    def supports_deploy(self, node: models.Node) -> bool:
        """Return whether the instance is a bootable container, which an address in a registry alone does not say."""
        info = node.instance_info
        is_container = any(info.get(key) == "bootc" for key in _KEYS)
        return is_container and str(info.get("image_source")).startswith(oci.SCHEME)

    def validate(self, task: Task) -> None:
        super().validate(task)
        image = task.node.instance_info.get("image_source")
        if not image or not uses_agent(task):
            raise errors.MissingParameter(where="instance_info", names="image_source (oci:// address of a container)")
        if not str(image).startswith(oci.SCHEME):
            allowed = "The address of a container, as oci://host/name:tag; deploy interface direct writes disk images."
            raise errors.Invalid(field=_FIELD, value=image, allowed=allowed)
        sources.read_container(task, str(image))

    @base.deploy_step(priority=80, requires_ramdisk=True, idempotent=True)
    def execute_bootc_install(self, task: Task) -> results.Result:
        """Have the agent install the container's system and write the config drive, as a step of its own."""
        if f"deploy.{_STEP}" not in commands.read_offered(task, "deploy"):
            raise errors.StepFailed(f"the agent has no deploy step {_STEP}: boot one that has, with podman")

        def build_args() -> dict[str, object]:
            image = str(task.node.instance_info["image_source"])
            secret = sources.read_container(task, image)
            return {"image_source": image, "configdrive": configdrive.read(task), "oci_pull_secret": secret}

        result = commands.execute_by_name(task, "deploy", "deploy", _STEP, build_args)
        return result if not isinstance(result, results.Done) else results.DONE  # the agent's repeats the secrets
