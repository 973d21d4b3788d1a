"""What boot interfaces of the agent's ramdisk have in common: which files a node boots, and for how long a boot device
lasts."""

from collections.abc import Mapping

from oslo_log import log

from ingot.common import boot_files, errors, fetching, masking
from ingot.drivers.images import fetches, glance_images, published
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

RAMDISK_KEYS = ("deploy_kernel", "deploy_ramdisk")
RESCUE_KEYS = ("rescue_kernel", "rescue_ramdisk")
_PERSISTENCY = "force_persistent_boot_device"
_PERSISTENT: Mapping[str, bool | None] = {"Always": True, "True": True, "Never": False, "Default": None, "False": None}


def check_arguments_of_grub(name: str, text: str) -> str:
    """Return kernel arguments that GRUB hands on as they are.

    :raises Invalid: it would change them.
    """
    if not boot_files.suits_grub(text):
        allowed = "GRUB hands on no apostrophes and backslashes; a quotation mark needs another one."
        raise errors.Invalid(field=name, value=text, allowed=allowed)
    return text


class RamdiskBoot(BootInterface):
    """Boots the agent from a kernel and a ramdisk."""

    parameters_option: tuple[str, str]
    """Group and name of the option with kernel parameters."""

    def get_properties(self) -> dict[str, str]:
        group, name = self.parameters_option
        return {
            "deploy_kernel": "URL, or id in Glance, of the agent's kernel. Required unless [deploy] deploy_kernel "
            "is set.",
            "deploy_ramdisk": "URL, or id in Glance, of the agent's initial ramdisk. Required unless [deploy] "
            "deploy_ramdisk is set.",
            **dict.fromkeys(
                RESCUE_KEYS,
                "The same for rescues. Default: the option of that name in [deploy], else what deployments boot. "
                "Optional.",
            ),
            _PERSISTENCY: "Which changes of the boot device last: Always, all; Never, none; Default, the last one of a "
            "deployment. Optional.",
            "kernel_append_params": f"Kernel parameters; %default% stands for [{group}] {name}. Optional.",
        }

    def validate_files(self, task: Task) -> None:
        """
        :raises IngotError: the node lacks a file, may not have it, or a value cannot be used.
        """
        info = task.node.driver_info
        own = {key: self._check_name(key, info[key]) for key in RESCUE_KEYS if info.get(key)}
        for key, value in {**dict(zip(RAMDISK_KEYS, self._read_ramdisk(task), strict=True)), **own}.items():
            if value.startswith(published.FILE):
                self.check_local_file(task, key, value)
                continue
            read = glance_images.read_permitted_image if info.get(key) else glance_images.read_image
            read(task, key, value)
        self.is_persistent(task, default=True)

    def check_local_file(self, task: Task, name: str, url: str) -> None:
        """Check where a file of a host of Ingot's is (``file://``).

        :raises Invalid: the machine cannot get it from there.
        """

    def _check_name(self, name: str, value: object) -> str:
        """Return the name of a file; of one of this host the machine's loader reads another, when it is published.

        :raises Invalid: as :meth:`check_text`.
        """
        if isinstance(value, str) and value.startswith(published.FILE) and value.isprintable():
            return value
        return self.check_text(name, value)

    def check_text(self, name: str, value: object) -> str:
        """Return a value that may stand in what the machine's loader reads.

        :raises Invalid: it is no text, or would do something else there.
        """
        raise NotImplementedError

    def check_ramdisk(self, task: Task) -> results.Answer:
        """Fail where a server has no such file; what cannot be judged from here is noted, and left to the machine."""
        doubts, info = [], task.node.driver_info
        files = self.choose_ramdisk(task) if self.conf.pxe.check_boot_files else ()
        for key, url in zip(RAMDISK_KEYS, files, strict=bool(files)):
            own = next((name for name in (*RAMDISK_KEYS, *RESCUE_KEYS) if info.get(name) == url), None)
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
        self.note_doubts(task, doubts)
        return results.DONE

    @staticmethod
    def note_doubts(task: Task, doubts: list[str]) -> None:
        """Note what the next boot may fail by; explanations of the node show it."""
        known = task.node.driver_internal_info
        if doubts or "boot_file_doubts" in known:
            left = {name: fact for name, fact in known.items() if name != "boot_file_doubts"}
            task.set(driver_internal_info=left | ({"boot_file_doubts": doubts} if doubts else {}))

    def set_boot_device(self, task: Task, device: str, persistent: bool) -> None:
        lasts = self.is_persistent(task, persistent)
        get_interface(task, ManagementInterface).set_boot_device(task, device, persistent=lasts)

    @staticmethod
    def is_persistent(task: Task, default: bool) -> bool:
        """Return whether a change of the boot device lasts.

        :raises Invalid: the node has no word for it that there is.
        """
        given = str(task.node.driver_info.get(_PERSISTENCY, "Default")).capitalize()
        if given not in _PERSISTENT:
            allowed = "One of Always, Default, Never."
            raise errors.Invalid(field=f"driver_info.{_PERSISTENCY}", value=given, allowed=allowed)
        forced = _PERSISTENT[given]
        return default if forced is None else forced

    def choose_ramdisk(self, task: Task) -> tuple[str, str]:
        """Return kernel and ramdisk for the flow that runs: a rescue may have its own."""
        kernel, ramdisk = files = self._read_ramdisk(task)
        if task.node.flow != "rescue":
            return files
        own_kernel, own_ramdisk = (self._find_file(task, key) for key in RESCUE_KEYS)
        return own_kernel or kernel, own_ramdisk or ramdisk

    def _read_ramdisk(self, task: Task) -> tuple[str, str]:
        files = {key: self._find_file(task, key) for key in RAMDISK_KEYS}
        missing = [key for key, value in files.items() if not value]
        if missing:
            raise errors.MissingParameter(
                where="driver_info", names=f"{' and '.join(missing)} (or the options of that name in [deploy])"
            )
        kernel, ramdisk = (self._check_name(key, files[key]) for key in RAMDISK_KEYS)
        return kernel, ramdisk

    def _find_file(self, task: Task, key: str) -> str | None:
        """Return what the node has for a key, else the operator: for its architecture, or for all."""
        of_architecture = self.conf.deploy[f"{key}_by_arch"].get(task.node.properties.get("cpu_arch"))
        found: str | None = task.node.driver_info.get(key) or of_architecture or self.conf.deploy[key]
        return found

    def build_arguments(self, task: Task, target: str, parameters: Mapping[str, str]) -> list[str]:
        """Return the arguments of a kernel.

        :param target: ``instance`` for a user's own, which has parameters of its own; the node's are for the agent.
        """
        group, name = self.parameters_option
        default: str = self.conf[group][name] or ""
        place = task.node.instance_info if target == "instance" else task.node.driver_info
        own = place.get("kernel_append_params")
        params = default if own is None else str(own).replace("%default%", default)
        return [*filter(None, [params]), *(f"{name}={value}" for name, value in parameters.items())]
