"""Boots machines without a network segment, DHCP or TFTP: the BMC fetches an image of the API.

``redfish-virtual-media`` puts the image into a virtual CD drive; with ``redfish-https`` the firmware of the machine
fetches it from the URL that its BMC was given.
"""

from collections.abc import Mapping

from oslo_log import log

from ingot.common import errors, fetching
from ingot.common.conf import opts
from ingot.common.json_types import Json, MediaConfig
from ingot.drivers.images import configdrive, fetches, media, ramdisks
from ingot.drivers.interfaces import boot, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import boot_device, connection, virtual_media
from ingot.drivers.redfish.base import RedfishInterface

LOG = log.getLogger(__name__)

_ISO_KEYS = ("deploy_iso", "rescue_iso")
_DRIVE = "cdrom"
_TRIAL = "medium on trial"


class MediaBoot(RedfishInterface, ramdisks.RamdiskBoot):
    """What both have in common: an image that the API makes, and a BMC that is given its URL."""

    parameters_option = ("redfish", "kernel_append_params")
    boots_images = True
    agent_sees_medium = False
    """Whether what the machine boots from is a drive of it."""

    def get_properties(self) -> dict[str, str]:
        return {
            **RedfishInterface.get_properties(self),
            **ramdisks.RamdiskBoot.get_properties(self),
            **media.PROPERTIES,
        }

    def validate(self, task: Task) -> None:
        super().validate(task)
        media.check_place(task)
        info, instance = task.node.driver_info, task.node.instance_info
        for key in _ISO_KEYS:
            if info.get(key):
                media.check_file(task, f"driver_info.{key}", info[key], of_user=True)
        if instance.get("boot_iso"):
            media.check_file(task, "instance_info.boot_iso", instance["boot_iso"], of_user=True)
        media.has_second_drive(task)
        if info.get("deploy_iso"):
            self.is_persistent(task, default=True)
            return
        self.validate_files(task)
        loader, of_user = media.find_bootloader(task)
        if loader is not None:
            media.check_file(task, "bootloader", loader, of_user)
        if boot.find_boot_mode(task) != "uefi":
            raise errors.Invalid(
                field="boot_mode",
                value="bios",
                allowed="Boot media that are made of a kernel and a ramdisk boot by UEFI; others come as deploy_iso.",
            )

    def build_arguments(self, task: Task, target: str, parameters: Mapping[str, str]) -> list[str]:
        arguments = super().build_arguments(task, target, parameters)
        self.check_text("kernel_append_params", " ".join(arguments))
        return arguments

    def check_text(self, name: str, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise errors.Invalid(field=name, value=value, allowed="It must be one line of text.")
        return value

    def check_ramdisk(self, task: Task) -> results.Answer:
        """See the base; the API makes the medium once on trial, so that what it lacks for that is known by now."""
        if not self._find_iso(task):
            answer = super().check_ramdisk(task)
            if isinstance(answer, results.PollAfter):
                return answer
        return self._try_medium(task) if self.conf.pxe.check_boot_files else results.DONE

    def _try_medium(self, task: Task) -> results.Answer:
        url = task.memory.get(_TRIAL) or media.offer(task, "trial", self._describe_ramdisk(task, {}))
        task.memory[_TRIAL] = url
        if not media.is_offered(task, url):
            return results.DONE
        try:
            refusal = fetches.find_refusal(task, url)
        except fetching.NotThere:
            where = url.partition("/boot/media/")[0]
            raise errors.ImageError(
                f"{where} has no boot media: [deploy] external_http_url, or that of driver_info, must be the address "
                "of the API as BMCs reach it. See also [pxe] check_boot_files"
            ) from None
        except fetching.FetchError as exc:
            doubts = task.node.driver_internal_info.get("boot_file_doubts", [])
            self.note_doubts(task, [*doubts, f"The boot medium could not be checked from the conductor: {exc.message}"])
            return results.DONE
        if isinstance(refusal, results.PollAfter):
            return refusal
        if refusal:
            raise errors.ImageError(refusal)
        return results.DONE

    def brings_token(self, task: Task) -> bool:
        return self._find_iso(task) is None or media.has_second_drive(task)

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        task.memory.pop(_TRIAL, None)
        own = self._describe_ramdisk(task, kernel_parameters)
        if task.node.flow == "inspect" and self.conf.inspector.force_dhcp:
            own["without_network_data"] = True
        elif not task.node.network_data and (found := self._find_network_data(task)):
            own["network_data"] = found
        if self.brings_token(task) and (token := task.node.agent_token):
            if self.agent_sees_medium or "second" in own:
                own["token"] = token
            else:
                own["arguments"] += f" ipa-agent-token={token}"
        self._boot(task, "ramdisk", own)

    @staticmethod
    def _find_network_data(task: Task) -> Json:
        return get_interface(task, NetworkInterface).get_agent_network_data(task)

    def _describe_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> MediaConfig:
        """Return what is on the medium that boots the agent, but for its token."""
        usual = opts.agent_api_url(self.conf)
        agent = {"ipa-api-url": usual, "boot_method": "vmedia", **kernel_parameters}
        if place := self.conf.deploy.external_callback_url:
            agent = {name: _move(value, usual, place.rstrip("/")) for name, value in agent.items()}
        if iso := self._find_iso(task):
            own: MediaConfig = {"image": iso, "of_user": ["image"]}
            if media.has_second_drive(task):
                own["second"] = "settings"
                own["arguments"] = " ".join(self.build_arguments(task, "ramdisk", agent))
            return own
        kernel, ramdisk = self.choose_ramdisk(task)
        named = task.node.driver_info.values()
        of_user = [name for name, file in (("kernel", kernel), ("ramdisk", ramdisk)) if file in named]
        return media.build(task, kernel, ramdisk, self.build_arguments(task, "ramdisk", agent), of_user)

    def clean_up_ramdisk(self, task: Task) -> None:
        self.note_doubts(task, [])
        target = task.node.boot_config.get("target")
        if target == "ramdisk":
            self._withdraw(task)
        elif target == "trial":
            task.set(boot_config={})

    def prepare_instance(self, task: Task) -> None:
        """Boot a deployed image from disk; a user's image or ramdisk, in ``instance_info``, as the agent is booted."""
        info = task.node.instance_info
        if info.get("boot_iso"):
            self._boot(
                task, "instance", {"image": str(info["boot_iso"]), "of_user": ["image"], **self._offer_drive(task)}
            )
        elif info.get("kernel") and info.get("ramdisk"):
            arguments = self.build_arguments(task, "instance", {})
            own = media.build(task, info["kernel"], info["ramdisk"], arguments, ["kernel", "ramdisk"])
            self._boot(task, "instance", {**own, **self._offer_drive(task)})
        elif get_interface(task, StorageInterface).boots_by_loader(task):
            raise self.not_supported("boot of a volume")
        else:
            self._withdraw(task)
            task.set(boot_config={"target": "disk"})
            self.set_boot_device(task, "disk", persistent=True)

    @staticmethod
    def _offer_drive(task: Task) -> MediaConfig:
        """Return what lets a user's image find its config drive, which is stored as the API is to send it."""
        drive = configdrive.read(task)
        if drive is None:
            return {}
        if drive != task.configdrive():
            task.set(configdrive=drive)
        return {"second": "configdrive"}

    def clean_up_instance(self, task: Task) -> None:
        if task.node.boot_config.get("target") in ("instance", "disk"):
            self._withdraw(task)

    def _find_iso(self, task: Task) -> str | None:
        """Return the finished image for the flow that runs."""
        info = task.node.driver_info
        own = info.get("rescue_iso") if task.node.flow == "rescue" else None
        found = own or info.get("deploy_iso")
        return str(found) if found else None

    def _boot(self, task: Task, target: str, own: MediaConfig) -> None:
        if "kernel" in own and task.node.boot_mode == "bios":
            # What is asked of it was checked: only the machine is not there yet.
            get_interface(task, ManagementInterface).set_boot_mode(task, "uefi")
            task.set(boot_mode="uefi")
        self._take_back_second(task)
        self._give(task, media.offer(task, target, own), persistent=target == "instance")
        if "second" in own:
            second, protocol = media.link(task, media.SECOND), virtual_media.read_protocol(task.node.driver_info)
            connection.call(task, lambda machine: virtual_media.insert_second(machine, second, protocol), factor=2)

    def _withdraw(self, task: Task) -> None:
        """End the link, and have the BMC forget the image; one that does not answer finds nothing there any more."""
        if "media" in task.node.boot_config:
            try:
                self._take_back(task)
                self._take_back_second(task)
            except errors.HardwareError as exc:
                LOG.warning("Node %s: its boot medium is not taken back from the BMC: %s", task.node.uuid, exc.message)
        task.set(boot_config={})

    @staticmethod
    def _take_back_second(task: Task) -> None:
        """Empty the second drive, if something was offered for it last. Safe to repeat."""
        if "second" in task.node.boot_config.get("media", {}):
            types = [*virtual_media.SECOND_TYPES]
            connection.call(task, lambda machine: virtual_media.eject(machine, types), factor=2)

    def _give(self, task: Task, url: str, persistent: bool) -> None:
        """Have the machine boot from an image."""
        raise NotImplementedError

    def _take_back(self, task: Task) -> None:
        """Undo :meth:`_give`. Safe to repeat."""
        raise NotImplementedError


def _move(url: str, usual: str, place: str) -> str:
    """Return a URL of the API with another address; any other text as it is."""
    return place + url.removeprefix(usual) if url == usual or url.startswith(f"{usual}/") else url


class RedfishVirtualMediaBoot(MediaBoot):
    """The image is in a virtual CD drive; its content is not the machine's after the boot."""

    agent_sees_medium = True

    def get_properties(self) -> dict[str, str]:
        return {**super().get_properties(), **virtual_media.PROPERTIES}

    def validate(self, task: Task) -> None:
        super().validate(task)
        virtual_media.read_protocol(task.node.driver_info)

    def _give(self, task: Task, url: str, persistent: bool) -> None:
        self._take_back(task)
        protocol = virtual_media.read_protocol(task.node.driver_info)
        connection.call(task, lambda machine: virtual_media.insert_and_see(machine, _DRIVE, url, protocol), factor=2)
        self.set_boot_device(task, "cdrom", persistent)

    def _take_back(self, task: Task) -> None:
        connection.call(task, lambda machine: virtual_media.eject(machine, [_DRIVE]), factor=2)


class RedfishHttpsBoot(MediaBoot):
    """The firmware fetches the image by HTTP, which UEFI knows since version 2.5."""

    def _give(self, task: Task, url: str, persistent: bool) -> None:
        choice = boot_device.choose(task, "uefihttp", self.is_persistent(task, persistent))
        lasts = connection.call(task, lambda machine: boot_device.write(machine, choice, url))
        boot_device.note(task, choice, lasts)

    def _take_back(self, task: Task) -> None:
        """Do nothing: the firmware gets a new device before each of Ingot's boots, and the link has ended."""
