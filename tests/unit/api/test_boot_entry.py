"""What machines ask for before they are known: first script, loaders, discovery; and what options add to scripts."""

import pathlib
import subprocess
import tempfile
from typing import Any

import sqlalchemy as sa

from ingot.api.agents import boot_kernel
from ingot.common import boot_loaders, errors
from ingot.db import models
from tests.unit.api.test_agents import MAC, AgentCase

UNKNOWN = "52-54-00-00-00-99"
HYPHENS = MAC.replace(":", "-")
KERNEL, RAMDISK = "http://10.0.0.1/kernel", "http://10.0.0.1/initrd.img"
BOOT = {"target": "ramdisk", "kernel": KERNEL, "initrd": RAMDISK, "kernel_args": "quiet BOOTIF=01-${mac:hexhyp}"}


class _Case(AgentCase):
    def fetch(self, path: str) -> str:
        answer = self.api("GET", path, version=None)
        self.assertEqual(200, answer.status, answer)
        return answer.text

    def override(self, **options: Any) -> None:
        """Set options, named as group__name."""
        for name, value in options.items():
            group, _, option = name.partition("__")
            self.conf.set_override(option, value, group=group)

    def directory(self) -> pathlib.Path:
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class Entry(_Case):
    def test_ipxe_asks_for_the_script_of_its_card_again_and_again(self) -> None:
        first, ask, pause, *rest = self.fetch("/boot.ipxe").splitlines()
        self.assertEqual("#!ipxe", first)
        self.assertEqual("chain --replace --autofree boot/ipxe/${mac:hexhyp}?arch=${buildarch} ||", ask)
        self.assertEqual("sleep 5", pause)
        self.assertEqual("exit 1", rest[-1])

    def test_loaders_are_sent_as_they_are(self) -> None:
        place = self.directory()
        self.override(boot_services__ipxe_path=str(place), deploy__signed_loader_path=str(place))
        for name, file in boot_loaders.FILES.items():
            target = place / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"MZ" + name.encode())
            self.assertEqual(f"MZ{name}", self.fetch(f"/boot/loaders/{name}"))

    def test_one_that_is_missing_is_an_operators_business_and_names_the_package(self) -> None:
        self.override(boot_services__ipxe_path=str(self.directory()))
        message = self.refused(503, "GET", "/boot/loaders/ipxe.efi", version=None)
        self.assertIn("Debian's ipxe", message)
        for name in ("no-such", "..%2f..%2fetc%2fpasswd"):
            self.assertEqual(404, self.api("GET", f"/boot/loaders/{name}", version=None).status, name)


class Discovery(_Case):
    def configure(self) -> None:
        self.override(auto_discovery__enabled=True, deploy__deploy_kernel=KERNEL, deploy__deploy_ramdisk=RAMDISK)
        self.override(service_catalog__endpoint_override="http://10.0.0.1:6385")

    def test_unknown_machines_boot_an_agent_that_sends_its_inventory(self) -> None:
        script = self.fetch(f"/boot/ipxe/{UNKNOWN}?arch=x86_64").splitlines()
        self.assertTrue(script[1].startswith(f"kernel {KERNEL} "))
        for word in (
            "ipa-api-url=http://10.0.0.1:6385",
            "ipa-inspection-callback-url=http://10.0.0.1:6385/v1/continue_inspection",
            "BOOTIF=01-${mac:hexhyp}",
        ):
            self.assertIn(word, script[1].split())
        self.assertIn(f"'BOOTIF=01-{UNKNOWN}'", self.fetch(f"/boot/grub/grub.cfg-01-{UNKNOWN}"))

    def test_each_architecture_has_its_agent(self) -> None:
        self.override(deploy__deploy_kernel_by_arch={"aarch64": "http://10.0.0.1/arm-kernel"})
        self.assertIn("/arm-kernel ", self.fetch(f"/boot/ipxe/{UNKNOWN}?arch=arm64"))
        for arch in ("x86_64", "i386", "nonsense", ""):
            self.assertIn(f"{KERNEL} ", self.fetch(f"/boot/ipxe/{UNKNOWN}?arch={arch}"))

    def test_a_port_that_is_not_to_boot_is_known_and_its_machine_left_alone(self) -> None:
        self.db.write(sa.update(models.table(models.Port)).values(pxe_enabled=False))
        self.assertIn("sanboot", self.fetch(f"/boot/ipxe/{HYPHENS}"))

    def test_without_an_agent_that_machines_can_fetch_they_boot_from_disk(self) -> None:
        self.override(deploy__deploy_kernel="6f6fd6a5-4f6a-4b5c-9d3a-2a9d0a1b2c3d")
        self.assertIn("sanboot", self.fetch(f"/boot/ipxe/{UNKNOWN}"))

    def test_it_is_off_by_default_and_for_what_is_no_address(self) -> None:
        self.assertIn("sanboot", self.fetch("/boot/ipxe/rubbish"))
        self.conf.clear_override("enabled", group="auto_discovery")
        self.assertIn("sanboot", self.fetch(f"/boot/ipxe/{UNKNOWN}"))

    def test_who_is_neither_known_nor_discovered_gets_the_operators_script(self) -> None:
        self.override(auto_discovery__enabled=False, pxe__ipxe_fallback_script="http://10.0.0.1/own.ipxe")
        lines = self.fetch(f"/boot/ipxe/{UNKNOWN}").splitlines()
        self.assertEqual(["#!ipxe", "chain --replace http://10.0.0.1/own.ipxe ||"], lines[:2])
        self.assertIn("sanboot", lines[2])
        self.override(pxe__ipxe_fallback_script="own.ipxe", deploy__http_url="http://10.0.0.2:8080/")
        self.assertIn("chain --replace http://10.0.0.2:8080/own.ipxe ||", self.fetch(f"/boot/ipxe/{UNKNOWN}"))


class Settings(_Case):
    def setUp(self) -> None:
        super().setUp()
        self.override(service_catalog__endpoint_override="http://10.0.0.1:6385")
        self.authorities = self.directory() / "ca.crt"
        self.authorities.write_text("-----BEGIN CERTIFICATE-----\n")
        self.put(boot_config=BOOT)

    def test_authorities_go_over_the_agents_ramdisk(self) -> None:
        self.assertNotIn("settings.cpio", self.fetch(f"/boot/ipxe/{HYPHENS}"))
        self.override(agent__api_ca_file=str(self.authorities))
        script = self.fetch(f"/boot/ipxe/{HYPHENS}")
        self.assertIn(" initrd=initrd.img initrd=settings.cpio\n", script)
        self.assertIn(f"initrd {RAMDISK}\ninitrd http://10.0.0.1:6385/boot/settings.cpio\nboot\n", script)
        grub = self.fetch(f"/boot/grub/grub.cfg-01-{MAC}")
        self.assertIn("initrd '(http,10.0.0.1)/initrd.img' '(http,10.0.0.1:6385)/boot/settings.cpio'", grub)
        pxelinux = self.fetch(f"/boot/pxelinux/pxelinux.cfg/01-{HYPHENS}")
        self.assertIn(f"INITRD {RAMDISK},http://10.0.0.1:6385/boot/settings.cpio", pxelinux)

    def test_a_users_own_ramdisk_gets_none(self) -> None:
        self.override(agent__api_ca_file=str(self.authorities))
        self.put(boot_config={**BOOT, "target": "instance"})
        self.assertNotIn("settings.cpio", self.fetch(f"/boot/ipxe/{HYPHENS}"))

    def test_cpio_unpacks_the_archive(self) -> None:
        self.override(agent__api_ca_file=str(self.authorities))
        archive, place = self.fetch("/boot/settings.cpio").encode(), self.directory()
        subprocess.run(["cpio", "-id", "--quiet"], input=archive, cwd=place, check=True)
        folder = place / "etc"
        self.assertEqual(self.authorities.read_text(), (folder / "ironic-python-agent" / "ironic.crt").read_text())
        self.assertIn(
            "cafile = /etc/ironic-python-agent/ironic.crt",
            (folder / "ironic-python-agent.d" / "ingot.conf").read_text(),
        )

    def test_what_cannot_be_read_is_said(self) -> None:
        self.assertIn("api_ca_file", self.refused(404, "GET", "/boot/settings.cpio", version=None))
        self.override(agent__api_ca_file="/no/such/file")
        self.assertIn("/no/such/file", self.refused(503, "GET", "/boot/settings.cpio", version=None))


class Template(_Case):
    def setUp(self) -> None:
        super().setUp()
        self.path = self.directory() / "ipxe.template"
        self.override(pxe__ipxe_config_template=str(self.path))
        self.put(boot_config=BOOT)

    def render(self, text: str) -> str:
        self.path.write_text(text)
        return self.fetch(f"/boot/ipxe/{HYPHENS}")

    def test_an_operators_template_has_the_names_of_ironic(self) -> None:
        script = self.render(
            "#!ipxe\nkernel {% if pxe_options.ipxe_timeout > 0 %}--timeout {{ pxe_options.ipxe_timeout }} {% endif %}"
            "{{ pxe_options.deployment_aki_path }} own=1 {{ pxe_options.pxe_append_params }}"
            "{{ pxe_options.no_such }} initrd={{ pxe_options.initrd_filename }}\n"
            "initrd {{ pxe_options.deployment_ari_path }}\nboot\n"
        )
        kernel = f"kernel {KERNEL} own=1 quiet BOOTIF=01-${{mac:hexhyp}} initrd=initrd.img"
        self.assertEqual(["#!ipxe", kernel, f"initrd {RAMDISK}", "boot"], script.splitlines())

    def test_other_scripts_and_loaders_stay_as_they_are(self) -> None:
        self.path.write_text("#!ipxe\nexit\n")
        self.assertIn("linux", self.fetch(f"/boot/grub/grub.cfg-01-{MAC}"))
        self.put(boot_config={"target": "disk"})
        self.assertIn("sanboot", self.fetch(f"/boot/ipxe/{HYPHENS}"))

    def test_what_renders_no_script_is_refused_at_the_start(self) -> None:
        for text in (
            "#!ipxe\n{{ nonsense",
            "no script",
            "#!ipxe\n{{ 1 / 0 }}",
            "#!ipxe\n{{ ''.__class__.__mro__ }}",
            "#!ipxe\n{{ 'x'.encode('zz') }}",
            "#!ipxe\n{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
            "#!ipxe\n" + "x" * 70000,
        ):
            self.path.write_text(text)
            refusal = self.assertRaises(errors.ConfigurationError, boot_kernel.check, self.conf)
            self.assertIn(str(self.path), refusal.message)
            self.assertEqual(503, self.api("GET", f"/boot/ipxe/{HYPHENS}", version=None).status)
        self.path.unlink()
        self.assertRaises(errors.ConfigurationError, boot_kernel.check, self.conf)

    def test_a_fallback_script_is_somewhere(self) -> None:
        self.path.write_text("#!ipxe\n")
        boot_kernel.check(self.conf)
        for name in ("own.ipxe", "http://a b/"):
            self.override(pxe__ipxe_fallback_script=name)
            self.assertRaises(errors.ConfigurationError, boot_kernel.check, self.conf)
