"""Network boot with iPXE: this notes in the node what the machine's next network boot gets.

The API renders the script when the machine asks for it (``GET /boot/ipxe/<mac>``) from ``node.boot_config``:
``target`` (``ramdisk``, ``instance``, ``volume`` or ``disk``), and for the first two ``kernel``, ``initrd`` and
``kernel_args``. What a volume needs, the API looks up. Kernels and ramdisks that are in Glance the API passes on.
"""

from collections.abc import Mapping

from oslo_log import log

from ingot.common import errors, fetching, iscsi, masking
from ingot.common.conf import opts
from ingot.drivers.images import fetches, glance_images
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_RAMDISK_KEYS = ("deploy_kernel", "deploy_ramdisk")
_RESCUE_KEYS = ("rescue_kernel", "rescue_ramdisk")
_PERSISTENCY = "force_persistent_boot_device"
_PERSISTENT: Mapping[str, bool | None] = {"Always": True, "True": True, "Never": False, "Default": None, "False": None}
_FILES = ("kernel", "initrd")

# iPXE fills in the address of the card that booted; the agent uses that card for its lookup.
_BOOTIF = "BOOTIF=01-${mac:hexhyp}"


def _check_command_part(name: str, value: object) -> str:
    """Return a value that may stand in a command of a boot script.

    :raises Invalid: it is no text, or would end the command.
    """
    if isinstance(value, str) and value.startswith("file:"):
        allowed = "An http or https URL, or the id of an image of Glance: machines fetch it themselves."
        raise errors.Invalid(field=name, value=value, allowed=allowed)
    if not isinstance(value, str) or not value.isprintable() or iscsi.IPXE_OPERATORS & set(value.split()):
        raise errors.Invalid(
            field=name, value=value, allowed="It must be one line of text, without the words ||, && and ; of iPXE."
        )
    return value


class IPXEBoot(BootInterface):
    """Boots the agent, or a user's ramdisk, from HTTP."""

    def get_properties(self) -> dict[str, str]:
        return {
            "deploy_kernel": "URL, or id in Glance, of the agent's kernel. Required unless [deploy] deploy_kernel "
            "is set.",
            "deploy_ramdisk": "URL, or id in Glance, of the agent's initial ramdisk. Required unless [deploy] "
            "deploy_ramdisk is set.",
            **dict.fromkeys(_RESCUE_KEYS, "The same for rescues. Default: those of deployments. Optional."),
            _PERSISTENCY: "Which changes of the boot device last: Always, all; Never, none; Default, the last one of a "
            "deployment. Optional.",
            "kernel_append_params": "Kernel parameters; %default% stands for [pxe] kernel_append_params. Optional.",
        }

    def validate(self, task: Task) -> None:
        info = task.node.driver_info
        own = {key: _check_command_part(key, info[key]) for key in _RESCUE_KEYS if info.get(key)}
        for key, value in {**dict(zip(_RAMDISK_KEYS, self._read_ramdisk(task), strict=True)), **own}.items():
            read = glance_images.read_permitted_image if info.get(key) else glance_images.read_image
            read(task, key, value)
        self._is_persistent(task, default=True)
        if not any(port.pxe_enabled for port in task.ports):
            raise errors.Invalid(
                field="ports",
                value=[port.address for port in task.ports],
                allowed="A node that boots from the network needs at least one port with pxe_enabled.",
            )

    def check_ramdisk(self, task: Task) -> results.Answer:
        """Fail where a server has no such file; what cannot be judged from here is noted, and left to the machine."""
        doubts, info = [], task.node.driver_info
        files = self._choose_ramdisk(task) if self.conf.pxe.check_boot_files else ()
        for key, url in zip(_RAMDISK_KEYS, files, strict=bool(files)):
            own = next((name for name in (*_RAMDISK_KEYS, *_RESCUE_KEYS) if info.get(name) == url), None)
            place = f"driver_info.{own}" if own else f"[deploy] {key}"
            where = f"{place}: {masking.mask_text(url)}"
            try:
                if answer := fetches.probe(task, url, is_own=own is not None):
                    return answer
            except fetching.NotThere as exc:
                advice = "The machine could not boot; correct it, or see [pxe] check_boot_files"
                raise errors.ImageError(f"{where}: {exc.message}. {advice}") from None
            except fetching.FetchError as exc:
                doubts.append(f"{where} could not be checked from the conductor: {exc.message}")
                LOG.warning("Node %s: %s; the machine is booted all the same", task.node.uuid, doubts[-1])
        self._note_doubts(task, doubts)
        return results.DONE

    @staticmethod
    def _note_doubts(task: Task, doubts: list[str]) -> None:
        """Note what the next boot may fail by; explanations of the node show it."""
        known = task.node.driver_internal_info
        if doubts or "boot_file_doubts" in known:
            left = {name: fact for name, fact in known.items() if name != "boot_file_doubts"}
            task.set(driver_internal_info=left | ({"boot_file_doubts": doubts} if doubts else {}))

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        agent = {"ipa-api-url": opts.agent_api_url(self.conf), **kernel_parameters}
        self._boot(task, "ramdisk", self._choose_ramdisk(task), agent)
        self._set_boot_device(task, "pxe", persistent=False)

    def clean_up_ramdisk(self, task: Task) -> None:
        self._note_doubts(task, [])
        if task.node.boot_config.get("target") == "ramdisk":
            task.set(boot_config={})

    def prepare_instance(self, task: Task) -> None:
        """Boot a deployed image from disk; a user's ramdisk, in ``instance_info``, and a volume from the network."""
        info, device = task.node.instance_info, "pxe"
        if info.get("kernel") and info.get("ramdisk"):
            self._boot(task, "instance", (info["kernel"], info["ramdisk"]), {})
        elif get_interface(task, StorageInterface).should_write_image(task):
            device = "disk"
            task.set(boot_config={"target": "disk"})
        else:
            task.set(boot_config={"target": "volume"}, boot_address=None)
        self._set_boot_device(task, device, persistent=True)

    def clean_up_instance(self, task: Task) -> None:
        if task.node.boot_config.get("target") in ("instance", "volume", "disk"):
            task.set(boot_config={})

    def _set_boot_device(self, task: Task, device: str, persistent: bool) -> None:
        lasts = self._is_persistent(task, persistent)
        get_interface(task, ManagementInterface).set_boot_device(task, device, persistent=lasts)

    @staticmethod
    def _is_persistent(task: Task, default: bool) -> bool:
        """Return whether a change of the boot device lasts.

        :raises Invalid: the node has no word for it that there is.
        """
        given = str(task.node.driver_info.get(_PERSISTENCY, "Default")).capitalize()
        if given not in _PERSISTENT:
            allowed = "One of Always, Default, Never."
            raise errors.Invalid(field=f"driver_info.{_PERSISTENCY}", value=given, allowed=allowed)
        forced = _PERSISTENT[given]
        return default if forced is None else forced

    def _choose_ramdisk(self, task: Task) -> tuple[str, str]:
        """Return kernel and ramdisk for the flow that runs: a rescue may have its own."""
        kernel, ramdisk = files = self._read_ramdisk(task)
        if task.node.flow != "rescue":
            return files
        info = task.node.driver_info
        return info.get("rescue_kernel") or kernel, info.get("rescue_ramdisk") or ramdisk

    def _read_ramdisk(self, task: Task) -> tuple[str, str]:
        files = {key: task.node.driver_info.get(key) or self._default_file(task, key) for key in _RAMDISK_KEYS}
        missing = [key for key, value in files.items() if not value]
        if missing:
            raise errors.MissingParameter(
                where="driver_info", names=f"{' and '.join(missing)} (or the options of that name in [deploy])"
            )
        kernel, ramdisk = (_check_command_part(key, files[key]) for key in _RAMDISK_KEYS)
        return kernel, ramdisk

    def _default_file(self, task: Task, key: str) -> str | None:
        of_architecture = self.conf.deploy[f"{key}_by_arch"].get(task.node.properties.get("cpu_arch"))
        default: str | None = of_architecture or self.conf.deploy[key]
        return default

    def _boot(self, task: Task, target: str, files: tuple[str, str], parameters: dict[str, str]) -> None:
        task.set(boot_config={"target": target})  # links to what was fetched for the last boot end
        config = {name: glance_images.link_file(task, name, given) for name, given in zip(_FILES, files, strict=True)}
        default: str = self.conf.pxe.kernel_append_params or ""
        # a user's ramdisk has parameters of its own; the node's are for the agent
        place = task.node.instance_info if target == "instance" else task.node.driver_info
        own = place.get("kernel_append_params")
        params = default if own is None else str(own).replace("%default%", default)
        arguments = [params, *(f"{name}={value}" for name, value in parameters.items())]
        config["kernel_args"] = " ".join([*filter(None, arguments), _BOOTIF])
        checked = {name: _check_command_part(name, value) for name, value in config.items()}
        task.set(boot_config={**task.node.boot_config, **checked})
