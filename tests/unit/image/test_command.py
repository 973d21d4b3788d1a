"""The command ``ingot-image``, as an operator types it; nothing is built here but a result that is found again."""

import contextlib
import io
import json
import os
import pathlib
import re

import fixtures
import testtools

from ingot.image import manifest, ramdisk
from ingot.image.cmd import agent_image
from ingot.image.order import ARCHITECTURES, Order
from ingot.image.profiles import load_all
from ingot.rack import tls
from tests import command_process

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtHQ0R2bE5vdEFLZXlCdXRMb29rc0xpa2VPbmU operator@example\n"


class CommandCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(command_process.CommandProcess())
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable("INGOT_CACHE", str(self.place / "cache")))

    def run_command(self, *words: object) -> tuple[int, str, str]:
        """Return status, standard output and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = agent_image.main([str(word) for word in words])
            except SystemExit as end:
                status = int(end.code or 0)
        return status, out.getvalue(), err.getvalue()

    def write(self, name: str, content: str | bytes = "") -> pathlib.Path:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def keep(self, directory: pathlib.Path, kernel: bytes = b"a kernel") -> pathlib.Path:
        """Write a result as a build does."""
        directory.mkdir(parents=True)
        (directory / "vmlinuz").write_bytes(kernel)
        (directory / "initrd.img").write_bytes(b"a ramdisk")
        facts = {"profile": "small", "architecture": "amd64", "agent": "13.0.0", "kernel": "6.1.0"}
        manifest.write(directory, facts)
        return directory

    def keep_ordered(self, kernel: bytes = b"a kernel") -> pathlib.Path:
        """Write the result that ``build --profile small --no-iso`` finds."""
        words = "boot_method=vmedia console=tty0 console=ttyS0,115200"
        order = Order(load_all()["small"], ARCHITECTURES["amd64"], words, media=False)
        return self.keep(self.place / "cache" / "agent-images" / ramdisk.name_result(order), kernel)


class Build(CommandCase):
    def test_what_is_built_already_is_found_and_copied(self) -> None:
        self.keep_ordered()
        status, out, err = self.run_command("build", "--profile", "small", "--no-iso", "--output", self.place / "www")
        self.assertEqual(0, status, err)
        self.assertEqual(b"a kernel", (self.place / "www" / "vmlinuz").read_bytes())
        self.assertIn("small amd64: agent 13.0.0, kernel 6.1.0\n", out)
        self.assertEqual((0, ""), self.run_command("verify", self.place / "www")[::2])

    def test_all_users_may_read_what_is_published_and_what_killed_builds_left_goes(self) -> None:
        left = self.keep_ordered().parent / "building-x"
        left.mkdir()
        os.utime(left, (0, 0))
        os.umask(0o077)
        self.run_command("build", "--profile", "small", "--no-iso", "--output", self.place / "sites" / "www")
        self.assertEqual(0o755, (self.place / "sites").stat().st_mode & 0o777)
        self.assertFalse(left.exists())

    def test_an_earlier_result_is_replaced_and_nothing_is_left(self) -> None:
        self.keep(self.place / "www", b"an old kernel")
        self.write("www/loaders/old", "of the old result only")
        manifest.write(self.place / "www", {"profile": "small"})
        self.keep_ordered()
        status, _, err = self.run_command("build", "--profile", "small", "--no-iso", "--output", self.place / "www")
        self.assertEqual(0, status, err)
        self.assertEqual(b"a kernel", (self.place / "www" / "vmlinuz").read_bytes())
        self.assertFalse((self.place / "www" / "loaders").exists())
        self.assertEqual(["cache", "www"], sorted(os.listdir(self.place)))

    def test_what_is_there_is_not_copied_again_unless_it_was_damaged(self) -> None:
        self.keep_ordered()
        words = ("build", "--profile", "small", "--no-iso", "--output", self.place / "www")
        found = []
        for content in (None, None, b"damaged "):
            if content:
                (self.place / "www" / "vmlinuz").write_bytes(content)
            self.assertEqual(0, self.run_command(*words)[0])
            found.append((self.place / "www").stat().st_ino)
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[1], found[2])
        self.assertEqual(b"a kernel", (self.place / "www" / "vmlinuz").read_bytes())

    def test_a_directory_with_other_files_stays_as_it_is(self) -> None:
        self.keep_ordered()
        self.write("www/index.html", "a site")
        status, _, err = self.run_command("build", "--profile", "small", "--no-iso", "--output", self.place / "www")
        self.assertEqual(1, status)
        self.assertIn(f"{self.place}/www has files that ingot-image did not make", err)
        self.assertEqual(["index.html"], os.listdir(self.place / "www"))

    def test_places_that_cannot_be(self) -> None:
        self.keep_ordered()
        file = self.write("file")
        link = self.place / "link"
        link.symlink_to(self.place / "elsewhere")
        for output, said in (
            (file, "is a file"),
            (link, "is a link"),
            (file / "www", "you may not write to|is a file"),
        ):
            status, _, err = self.run_command("build", "--profile", "small", "--no-iso", "--output", output)
            self.assertEqual(1, status, str(output))
            self.assertRegex(err, f"^ingot-image: {re.escape(str(output))}.*({said})")

    def test_a_host_that_lacks_programs_gets_their_packages_named(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("PATH", str(self.place)))
        status, _, err = self.run_command("build", "--profile", "small", "--output", self.place / "www")
        self.assertEqual(1, status)
        self.assertRegex(err, "this computer lacks packages: apt-get install apt cpio .*mmdebstrap tar zstd\n")
        self.assertEqual([], os.listdir(self.place / "cache" / "agent-images"))
        self.assertFalse((self.place / "www").exists())

    def test_profiles_are_listed(self) -> None:
        status, out, _ = self.run_command("profiles")
        self.assertEqual(0, status)
        self.assertRegex(out, r"server: physical servers.*\d+ MiB of memory\nsmall: virtual machines")


class Refused(CommandCase):
    """What cannot be meant is refused before anything is done, with the option and the value."""

    def check(self, option: str, value: object, said: str) -> None:
        status, _, err = self.run_command("build", "--output", self.place / "www", option, value)
        self.assertEqual(2, status, str(value))
        self.assertIn(f"argument {option}: ", err)
        self.assertRegex(err, said)
        self.assertEqual([], [name for name in os.listdir(self.place) if name in ("cache", "www")])

    def test_profiles_and_architectures_that_there_are_not(self) -> None:
        self.check("--profile", "huge", "invalid choice: 'huge'.*server.*small")
        self.check("--arch", "riscv64", "invalid choice: 'riscv64'.*amd64.*arm64")

    def test_packages(self) -> None:
        for name in ("", "=Dir", "a b", "../x", "Ledmon", "a,b", "x;y"):
            self.check("--extra-package", name, "name a package of Debian")

    def test_files(self) -> None:
        file = self.write("file")
        for text in (
            "",
            "file",
            f"{file}:",
            f"{file}:etc/x",
            f"{file}:/etc/../x",
            f"{file}:/",
            ":/etc/x",
            f"{file}:/a\nb",
        ):
            self.check("--extra-file", text, "SOURCE:DESTINATION")
        self.check("--extra-file", f"{self.place}/none:/etc/x", "No such file")
        self.check("--extra-file", f"{self.place}:/etc/x", "Is a directory")

    def test_authorities(self) -> None:
        pem = tls.create(self.place, "192.0.2.1", None)[1].encode()
        self.check("--ca-file", self.place / "none", "No such file")
        self.check("--ca-file", self.write("empty"), "no certificates in PEM")
        self.check("--ca-file", self.write("text", "no certificate"), "no certificates in PEM")
        self.check("--ca-file", self.write("both", pem + b"-----BEGIN PRIVATE KEY-----\n"), "a private key")

    def test_keys(self) -> None:
        private = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
        for content in ("", "# no key\n", private, KEY + "command\n"):
            self.check("--ssh-key", self.write("keys", content), "a public key of OpenSSH")

    def test_mirrors(self) -> None:
        for text in (
            "",
            "debian",
            "ftp://host/debian",
            "http:///",
            "http://a b/",
            "deb http://host",
            "http://host/\nx",
        ):
            self.check("--mirror", text, "a URL of http, https, file, copy")

    def test_kernel_arguments(self) -> None:
        for text in ("a='b'", 'a="b', "a\nb", "a\\b"):
            self.check("--append", text, "apostrophes")


class Verify(CommandCase):
    def check_fault(self, directory: pathlib.Path, said: str) -> None:
        status, out, err = self.run_command("verify", directory)
        self.assertEqual((1, ""), (status, out))
        self.assertRegex(err, said)

    def test_options_are_shown_for_what_is_right(self) -> None:
        place = self.keep(self.place / "www")
        _, out, _ = self.run_command("verify", place)
        self.assertIn("2 files are what they should be: initrd.img, vmlinuz\n", out)
        self.assertIn(f"[deploy] deploy_kernel = file://{place}/vmlinuz\n", out)
        self.assertIn(f"[deploy] deploy_ramdisk = file://{place}/initrd.img\n", out)

    def test_whatever_is_wrong_is_named(self) -> None:
        place = self.keep(self.place / "www")
        self.write("www/vmlinuz", "a_kernel")
        self.write("www/more")
        (place / "initrd.img").unlink()
        for said in (
            r"vmlinuz: its SHA-256 is [0-9a-f]{64}, and should be",
            "initrd.img: it is missing",
            "more: the mani",
        ):
            self.check_fault(place, said)
        self.write("www/vmlinuz", "short")
        self.check_fault(place, "vmlinuz: it has 5 bytes, and should have 8")

    def test_manifests_that_are_none(self) -> None:
        for text in ("", "{", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": {"x": {"size": "1"}}}'):
            self.write("www/manifest.json", text)
            self.check_fault(self.place / "www", "manifest.json (cannot be read|is no manifest of ingot-image)")

    def test_what_is_no_directory(self) -> None:
        self.check_fault(self.place / "none", "none is no directory")

    def test_the_manifest_knows_all_files_and_the_sums_those_and_itself(self) -> None:
        place = self.keep(self.place / "www")
        found = json.loads((place / "manifest.json").read_text())
        self.assertEqual(["initrd.img", "vmlinuz"], sorted(found["files"]))
        self.assertEqual(8, found["files"]["vmlinuz"]["size"])
        self.assertEqual(3, len((place / "SHA256SUMS").read_text().splitlines()))
