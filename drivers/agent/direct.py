"""Deploys whole-disk images: the agent on the machine fetches the image and writes it to disk.

A node that boots from a volume needs neither: the same steps are planned, and those for agent or disk do nothing. The
core steps are those of specification 000, with its priorities. Each looks at what is there before it acts, so that
another conductor can repeat it.
"""

from ingot.common import errors
from ingot.drivers.agent import answers, booting, client, commands, session
from ingot.drivers.agent.deploy import AgentDeploy
from ingot.drivers.images import instance_image
from ingot.drivers.interfaces import base, boot, power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task


def _writes_image(task: Task) -> bool:
    """Return whether the agent writes an image to disk; else the machine boots from a volume, and no agent runs."""
    return get_interface(task, StorageInterface).should_write_image(task)


class DirectDeploy(AgentDeploy):
    """The deploy interface ``direct``."""

    def get_properties(self) -> dict[str, str]:
        return {
            **super().get_properties(),
            booting.FORCE_OUT_OF_BAND: "Whether the BMC, and not the agent, switches the machine off after a "
            "deployment. Optional, default false.",
            **instance_image.PROPERTIES,
        }

    def runs_agent(self, task: Task, kind: str) -> bool:
        return super().runs_agent(task, kind) or (kind == "deploy" and _writes_image(task))

    def validate(self, task: Task) -> None:
        super().validate(task)
        boot.find_boot_mode(task)
        if _writes_image(task):
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

    def prepare(self, task: Task) -> results.Result:
        def prepare_machine(task: Task) -> results.Result:
            if _writes_image(task):
                return booting.run_unless_running(task, power_control.power_off, self._enter_networks)
            # an agent that was left running from before is not used either
            return results.run_phases(task, power_control.power_off, booting.forget_agent)

        def attach_volumes(task: Task) -> None:
            get_interface(task, StorageInterface).attach_volumes(task)

        return results.run_phases(task, prepare_machine, attach_volumes)

    @staticmethod
    def _enter_networks(task: Task) -> None:
        network = get_interface(task, NetworkInterface)
        network.unconfigure_tenant_networks(task)
        network.add_provisioning_network(task)
        session.forget(task)  # last: until then it is known that this has to be done

    def clean_up(self, task: Task) -> None:
        instance_image.withdraw(task)
        super().clean_up(task)

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> results.Result:
        """Boot the agent and wait for it, unless one is there already or none is needed."""

        def prepare_machine(task: Task) -> results.Result:
            """Also connect to the networks that :meth:`prepare` did not enter for an agent that has gone since."""
            networks = (self._enter_networks,) if session.read_facts(task).get("used_as_found") else ()
            return results.run_phases(task, power_control.power_off, *networks)

        if not _writes_image(task):
            return results.DONE
        return booting.run_unless_running(task, prepare_machine, *booting.BOOT)

    @base.deploy_step(priority=80, requires_ramdisk=True, idempotent=True)
    def write_image(self, task: Task) -> results.Result:
        """Have the agent write image and config drive, as a step of its own if it knows that step."""

        def build_args() -> dict[str, object]:
            image_info = instance_image.build_image_info(task, task.memory["checksum"])
            return {"image_info": image_info, "configdrive": task.configdrive()}

        if not _writes_image(task):
            return results.DONE
        checksum = task.memory.get("checksum") or instance_image.read_checksum(task)
        if isinstance(checksum, results.PollAfter):
            return checksum
        task.memory["checksum"] = checksum
        if "deploy.write_image" in commands.read_offered(task, "deploy"):
            result = commands.execute_by_name(task, "deploy", "deploy", "write_image", build_args)
        else:
            result = commands.run(task, "standby.prepare_image", build_args)
        if not isinstance(result, results.Done):
            return result
        instance_image.withdraw(task)
        return results.DONE  # without the agent's result, which repeats the config drive

    @base.deploy_step(priority=60, requires_ramdisk=True, idempotent=True)
    def prepare_instance_boot(self, task: Task) -> results.Result:
        """Make the machine boot what was written."""
        return results.run_phases(task, self._install_bootloader, booting.prepare_instance)

    @staticmethod
    def _install_bootloader(task: Task) -> results.Result:
        """Have the agent make the machine boot from its disk.

        Only UEFI firmware needs an entry for a whole-disk image, which brings its own loader.
        """

        def build_params() -> dict[str, object]:
            ask = client.AgentClient(task).ask_for
            uuids = ask("standby.get_partition_uuids", {}, lambda answer: answers.read_object("result", answer or {}))
            return {
                "root_uuid": uuids.get("root uuid"),
                "efi_system_part_uuid": uuids.get("efi system partition uuid"),
                "prep_boot_part_uuid": None,
                "target_boot_mode": "uefi",
                "ignore_bootloader_failure": False,
            }

        if boot.find_boot_mode(task) != "uefi" or not _writes_image(task):
            return results.DONE
        return commands.run(task, "image.install_bootloader", build_params)

    @base.deploy_step(priority=40, idempotent=True)
    def tear_down_agent(self, task: Task) -> results.Result:
        """End the agent, if there is one, and leave the machine off."""
        return results.run_phases(task, *booting.SHUT_DOWN) if _writes_image(task) else power_control.power_off(task)

    @base.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Move the machine from the network of deployments to those of the user."""
        network = get_interface(task, NetworkInterface)
        network.remove_provisioning_network(task)
        network.configure_tenant_networks(task)

    @base.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switch the machine on."""
        return power_control.power_on(task)
