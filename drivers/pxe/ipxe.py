"""Network boot with iPXE, which also starts volumes, and images that users have made."""

from ingot.common import errors, iscsi
from ingot.drivers.images import media
from ingot.drivers.interfaces.task import Task
from ingot.drivers.pxe import dhcp, network


class IPXEBoot(network.NetworkBoot):
    """The boot interface ``ipxe``."""

    boots_images = True

    def get_properties(self) -> dict[str, str]:
        places = ("external_http_url", "ramdisk_image_download_source")
        return {**super().get_properties(), **{name: media.PROPERTIES[name] for name in places}}

    def validate(self, task: Task) -> None:
        super().validate(task)
        if image := task.node.instance_info.get("boot_iso"):
            media.check_file(task, "instance_info.boot_iso", image, of_user=True)
            media.check_place(task)

    def check_text(self, name: str, value: object) -> str:
        text = network.check_line(name, value)
        if iscsi.IPXE_OPERATORS & set(text.split()):
            raise errors.Invalid(field=name, value=value, allowed="A text without the words ||, && and ; of iPXE.")
        return text

    def prepare_instance(self, task: Task) -> None:
        """Boot a user's image as a drive that the network has; anything else as the base does."""
        image = task.node.instance_info.get("boot_iso")
        if not image:
            super().prepare_instance(task)
            return
        url = media.offer(task, network.IMAGE, {"image": str(image), "of_user": ["image"]})
        task.set(boot_config={**task.node.boot_config, "image": self.check_text("instance_info.boot_iso", url)})
        dhcp.admit(task, dhcp.choose_chain(self.name))
        self.set_boot_device(task, "pxe", persistent=True)
