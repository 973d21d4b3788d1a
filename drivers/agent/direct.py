"""Deploys whole-disk images: the agent on the machine fetches the image and writes it to disk."""

import dataclasses
from collections.abc import Mapping

from ingot.common import errors
from ingot.drivers.agent import answers, booting, client, commands
from ingot.drivers.agent.custom import CustomAgentDeploy, uses_agent
from ingot.drivers.images import configdrive, instance_image
from ingot.drivers.interfaces import base, boot, results
from ingot.drivers.interfaces.task import Task

_POSTED = frozenset(("command", "rebooting"))
"""Keys of a step's memory once the agent has its command."""


class DirectDeploy(CustomAgentDeploy):
    """The deploy interface ``direct``."""

    keeps_drive_parts = False

    def get_properties(self) -> dict[str, str]:
        return {**super().get_properties(), **instance_image.PROPERTIES}

    def validate(self, task: Task) -> None:
        super().validate(task)
        if uses_agent(task):
            instance_image.read_requested_image(task)
            instance_image.read_proxies(task)
            return
        for key in ("image_source", "kernel", "ramdisk"):
            if task.node.instance_info.get(key):
                raise errors.Invalid(
                    field=f"instance_info.{key}",
                    value=task.node.instance_info[key],
                    allowed="The node boots from a volume, and nothing is written: leave it out, or delete the volume "
                    "target with boot index 0.",
                )

    def check_instance(self, task: Task) -> results.Answer:
        return instance_image.check(task) if uses_agent(task) else results.DONE

    def clean_up(self, task: Task) -> None:
        instance_image.withdraw(task)
        super().clean_up(task)

    @base.deploy_step(priority=80, requires_ramdisk=True, idempotent=True)
    def write_image(self, task: Task) -> results.Result:
        """Have the agent write image and config drive, as a step of its own if it knows that step."""
        if not uses_agent(task):
            return results.DONE
        result = self._put_image(task)
        if not isinstance(result, results.Done):
            return result
        instance_image.withdraw(task)
        return results.DONE  # without the agent's result, which repeats the config drive

    @staticmethod
    def _examine(task: Task) -> instance_image.ReadyImage | results.PollAfter:
        """Return the image, looked into once; a registry's is asked for again until the agent has its token."""
        kept = task.memory.get("image")
        if kept and (kept["url"] is None or not _POSTED.isdisjoint(task.memory)):
            return instance_image.ReadyImage(**kept)
        image = instance_image.examine(task)
        if isinstance(image, instance_image.ReadyImage):
            # The token is a secret, and of no use for long.
            task.memory["image"] = dataclasses.asdict(dataclasses.replace(image, authorization=None))
        return image

    def _put_image(self, task: Task) -> results.Result:
        """Bring image and config drive to the disk; called again until it answers done."""
        image = self._examine(task)
        if isinstance(image, results.PollAfter):
            return image

        def build_args() -> dict[str, object]:
            return {"image_info": instance_image.build_image_info(task, image), "configdrive": configdrive.read(task)}

        if "deploy.write_image" in commands.read_offered(task, "deploy"):
            return commands.execute_by_name(task, "deploy", "deploy", "write_image", build_args)
        return commands.run(task, "standby.prepare_image", build_args)

    @base.deploy_step(priority=60, requires_ramdisk=True, idempotent=True)
    def prepare_instance_boot(self, task: Task) -> results.Result:
        """Make the machine boot what was written."""
        return results.run_phases(task, self._install_bootloader, booting.prepare_instance)

    def _install_bootloader(self, task: Task) -> results.Result:
        """Have the agent make the machine boot from its disk.

        Only UEFI firmware needs an entry for a whole-disk image, which brings its own loader.
        """

        def build_params() -> dict[str, object]:
            uuids = self._find_partitions(task)
            return {
                "root_uuid": uuids.get("root uuid"),
                "efi_system_part_uuid": uuids.get("efi system partition uuid"),
                "prep_boot_part_uuid": None,
                "target_boot_mode": "uefi",
                "ignore_bootloader_failure": False,
            }

        if boot.find_boot_mode(task) != "uefi" or not uses_agent(task):
            return results.DONE
        return commands.run(task, "image.install_bootloader", build_params)

    def _find_partitions(self, task: Task) -> Mapping[str, object]:
        """Return the identities of partitions that the agent noted as it wrote the image."""
        ask = client.AgentClient(task).ask_for
        return ask("standby.get_partition_uuids", {}, lambda answer: answers.read_object("result", answer or {}))
