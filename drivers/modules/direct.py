"""Deploys whole-disk images: the agent on the machine fetches the image and writes it to disk. A node that boots from a
volume needs neither: the same steps are planned, and those that would do something with agent or disk do nothing.

The core steps are those of specification 000, with its priorities. Each looks at what is there before it acts, so that
another conductor can repeat it.
"""

import functools
from typing import Any

from ingot.common import errors
from ingot.drivers import boot_mode, image_sources, images, power_control, results, steps
from ingot.drivers.agent import booting, client, commands, session
from ingot.drivers.interfaces.base import needed
from ingot.drivers.modules.agent_deploy import AgentDeploy
from ingot.drivers.task import Task

_NOT_WITH_A_VOLUME = ("image_source", "kernel", "ramdisk")


def _writes_image(task: Task) -> bool:
    """Whether the machine boots what the agent writes to its disk; otherwise it boots from a volume, and no agent runs
    in its deployments."""
    return bool(needed(task, "storage").should_write_image(task))


def _refuse_image(instance_info: dict[str, Any]) -> None:
    for key in _NOT_WITH_A_VOLUME:
        if instance_info.get(key):
            raise errors.Invalid(
                field=f"instance_info.{key}",
                value=instance_info[key],
                allowed="The node boots from a volume, and nothing is written: leave it out, or delete the volume "
                "target with boot index 0.",
            )


class DirectDeploy(AgentDeploy):
    """The deploy interface ``direct``."""

    def get_properties(self) -> dict[str, str]:
        return {
            "deploy_kernel": "See the boot interface.",
            "deploy_ramdisk": "See the boot interface.",
            booting.FORCE_OUT_OF_BAND: "Whether the BMC, and not the agent, switches the machine off after a "
            "deployment. Optional, default false.",
        }

    def runs_agent(self, task: Task, kind: str) -> bool:
        return super().runs_agent(task, kind) or (kind == "deploy" and _writes_image(task))

    def validate(self, task: Task) -> None:
        needed(task, "boot").validate(task)
        boot_mode.of(task)
        if _writes_image(task):
            images.requested(task)
        else:
            _refuse_image(task.node.instance_info)

    def prepare(self, task: Task) -> results.Result:
        make_ready = self._for_agent if _writes_image(task) else self._without_agent
        return results.in_phases(task, make_ready, self._attach_volumes)

    @staticmethod
    def _for_agent(task: Task) -> results.Result:
        return booting.unless_there(task, power_control.power_off, DirectDeploy._enter_networks)

    @staticmethod
    def _enter_networks(task: Task) -> None:
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.network.add_provisioning_network(task)
        session.forget(task)  # last: until then it is known that this has to be done

    @staticmethod
    def _without_agent(task: Task) -> results.Result:
        return results.in_phases(task, power_control.power_off, DirectDeploy._end_agent)

    @staticmethod
    def _end_agent(task: Task) -> None:
        """One that was left running from before is not used either."""
        session.forget(task)
        task.driver.boot.clean_up_ramdisk(task)

    @staticmethod
    def _attach_volumes(task: Task) -> None:
        task.driver.storage.attach_volumes(task)

    def clean_up(self, task: Task) -> None:
        image_sources.withdraw(task)
        super().clean_up(task)

    @steps.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> results.Result:
        """Boots the agent and waits for it, unless one is there already or none is needed."""
        if not _writes_image(task):
            return results.DONE
        return booting.unless_there(task, self._leave_what_was_found, *booting.BOOT)

    @staticmethod
    def _leave_what_was_found(task: Task) -> results.Result:
        """Off, and onto the networks that :meth:`prepare` did not enter for an agent that has gone since."""
        left = (DirectDeploy._enter_networks,) if booting.was_used_as_found(task) else ()
        return results.in_phases(task, power_control.power_off, *left)

    @steps.deploy_step(priority=80, requires_ramdisk=True, idempotent=True)
    def write_image(self, task: Task) -> results.Result:
        """Has the agent write image and config drive, as a step of its own if it knows that step."""
        if not _writes_image(task):
            return results.DONE
        what = functools.partial(self._what_to_write, task)
        if commands.offers(task, "deploy", "deploy", "write_image"):
            answer = commands.execute_by_name(task, "deploy", "deploy", "write_image", what)
        else:
            answer = commands.run(task, "standby.prepare_image", what)
        if not isinstance(answer, results.Done):
            return answer
        image_sources.withdraw(task)
        return results.DONE  # without the agent's result, which repeats the config drive

    @staticmethod
    def _what_to_write(task: Task) -> dict[str, Any]:
        return {"image_info": images.info(task), "configdrive": task.configdrive()}

    @steps.deploy_step(priority=60, requires_ramdisk=True, idempotent=True)
    def prepare_instance_boot(self, task: Task) -> results.Result:
        """Makes the machine boot what was written."""
        return results.in_phases(task, self._install_bootloader, self._boot_instance_from_now_on)

    @staticmethod
    def _install_bootloader(task: Task) -> results.Result:
        """Only UEFI firmware needs to be told about a whole-disk image, which brings its own loader."""
        mode = boot_mode.of(task)
        if mode != "uefi" or not _writes_image(task):
            return results.DONE

        def params() -> dict[str, Any]:
            found = client.AgentClient(task).ask("standby.get_partition_uuids", {}) or {}
            return {
                "root_uuid": found.get("root uuid"),
                "efi_system_part_uuid": found.get("efi system partition uuid"),
                "prep_boot_part_uuid": None,
                "target_boot_mode": mode,
                "ignore_bootloader_failure": False,
            }

        return commands.run(task, "image.install_bootloader", params)

    @staticmethod
    def _boot_instance_from_now_on(task: Task) -> None:
        task.driver.boot.prepare_instance(task)

    @steps.deploy_step(priority=40, idempotent=True)
    def tear_down_agent(self, task: Task) -> results.Result:
        """Ends the agent, if there is one, and leaves the machine off."""
        return booting.shut_down(task) if _writes_image(task) else power_control.power_off(task)

    @steps.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """From the network of deployments to those of the user."""
        task.driver.network.remove_provisioning_network(task)
        task.driver.network.configure_tenant_networks(task)

    @steps.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switches the machine on."""
        return power_control.power_on(task)
