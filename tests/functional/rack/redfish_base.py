"""What the tests of Redfish faces share: a rack with them, sushy as their client, and an image to start from."""

import io
from typing import Any, ClassVar

import pycdlib
import sushy
from sushy import auth, connector

from tests.functional.rack.base import RackTest
from tests.functional.rack.stand_in import wait_until

PATIENCE_S = 20.0


def boot_image(arguments: str) -> bytes:
    """Return an ISO whose loader starts a kernel with these arguments."""
    image = pycdlib.PyCdlib()
    image.new(interchange_level=3, rock_ridge="1.09", joliet=3)
    for name in ("BOOT", "GRUB"):
        path = "/BOOT" if name == "BOOT" else "/BOOT/GRUB"
        image.add_directory(path, rr_name=name.lower(), joliet_path=path.lower())
    text = f"menuentry 'x' {{\n  linux /vmlinuz {arguments}\n  initrd /initrd\n}}\n".encode()
    image.add_fp(
        io.BytesIO(text), len(text), "/BOOT/GRUB/GRUB.CFG;1", rr_name="grub.cfg", joliet_path="/boot/grub/grub.cfg"
    )
    written = io.BytesIO()
    image.write_fp(written)
    image.close()
    return written.getvalue()


class RedfishTest(RackTest):
    """Each test has a rack whose machines have faces of their own and a shared one."""

    settings: ClassVar[dict[str, Any]] = {
        "redfish_port": 0,
        "redfish_base_port": 0,
        "redfish_task_time": 0.1,
        "bmc_restart_time": 0.4,
    }

    @property
    def address(self) -> str:
        """The first machine's own face."""
        return str(self.rack.machines[0]["redfish"]["address"])

    @property
    def ca_file(self) -> str:
        return str(self.rack.description["redfish_ca_file"])

    def connect(
        self, address: str = "", login: auth.AuthBase | None = None, timeout: float = PATIENCE_S, verify: Any = None
    ) -> sushy.Sushy:
        """Return a client that says at once what goes wrong, with a session unless another login is given."""
        address = address or self.address
        door = connector.Connector(
            address, verify=self.ca_file if verify is None else verify, server_side_retries=1,
            default_request_timeout=timeout,
        )  # fmt: skip
        self.addCleanup(door.close)
        return sushy.Sushy(address, auth=login or auth.SessionAuth("admin", "password"), connector=door)

    def system(self, **options: Any) -> Any:
        return self.connect(**options).get_system()

    def order(self, fault: str, value: Any = None, times: int | None = None) -> None:
        self.rack.control.order_fault(self.name, fault, value, times)

    def restart(self) -> None:
        """Let the firmware of the machine start."""
        self.rack.control.power(self.name, "off")
        self.rack.control.power(self.name, "on")

    def eventually(self, condition: Any, what: str) -> None:
        wait_until(condition, PATIENCE_S, what)
