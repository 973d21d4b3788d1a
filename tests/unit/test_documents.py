"""Paths and names that the documents of contributors mention are there: recipes stay literally true."""

import configparser
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import testtools

from tests import spec_tables

ROOT = pathlib.Path(__file__).parents[2]
REDFISH = ROOT / "doc" / "source" / "operator" / "redfish-and-ironic.rst"
SECURITY = ROOT / "doc" / "source" / "operator" / "security.rst"
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "tests/gate/faults/README.md",
    "doc/source/contributor/*.rst",
)
LITERAL = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+)\1(?!`)")
MENTION = re.compile(r"([\w.-]*\w/[\w./-]*|[\w-]+\.(?:py|sh|cfg|toml))(?:: ([\w., ]+))?")
"""A path, with a slash or the ending of a file; after a colon names that the file defines."""

NOT_HERE = (".gate", ".venv", "v1/", "ingot/", "bin/", "__init__.py", "stack.sh", "unstack.sh", "clean.sh")
"""Beginnings of paths that the documents mention and that no checkout has; the last are scripts of DevStack."""

WHEEL = re.compile(r"ingot-(\d+\.\d+\.\d+)")
"""The wheel, or the archive, of a release."""

PICTURE = re.compile(r"images/([\w-]+\.png)")
LARGEST_PICTURE = 120 * 1024

LISTENS = re.compile(r"\b(create|start)_(unix_)?server\(|\w\.bind\(|\bHTTPServer\(|\bmake_server\(")
"""What opens a socket for others. A call of ``inspect.signature(...).bind`` does not."""


class Mention(NamedTuple):
    document: pathlib.Path
    path: str
    names: list[str]

    @property
    def found(self) -> pathlib.Path | None:
        """What it means: from the root of the checkout, or beside the document."""
        places = (ROOT / self.path, self.document.parent / self.path)
        return next((place for place in places if place.exists()), None)

    @property
    def missing(self) -> list[str]:
        """What is not there: the path, or names in it."""
        if self.found is None:
            return [self.path]
        known = spec_tables.defined_in(self.found) if self.names else frozenset()
        return [f"{self.path}: {name}" for name in self.names if name not in known]


def mentions() -> Iterator[Mention]:
    for pattern in DOCUMENTS:
        for document in sorted(ROOT.glob(pattern)):
            for _, text in LITERAL.findall(document.read_text()):
                if (found := MENTION.fullmatch(text)) and not text.startswith(NOT_HERE):
                    names = [name.strip() for name in (found[2] or "").split(",")]
                    yield Mention(document, found[1], [name for name in names if name])


class DocumentsTest(testtools.TestCase):
    def test_what_they_mention_exists(self) -> None:
        wrong = {f"{one.document.name}: {missing}" for one in mentions() for missing in one.missing}
        self.assertEqual([], sorted(wrong))

    def test_the_readme_lists_the_commands(self) -> None:
        setup = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        setup.read(ROOT / "setup.cfg")
        installed = re.findall(r"^(\S+) =", setup["options.entry_points"]["console_scripts"], re.MULTILINE)
        table = (ROOT / "README.md").read_text().partition("## The commands it installs")[2].partition("##")[0]
        self.assertEqual(sorted(installed), sorted(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)))

    def test_pages_name_the_wheel_of_this_release(self) -> None:
        setup = configparser.ConfigParser(interpolation=None)
        setup.read(ROOT / "setup.cfg")
        pages = (ROOT / "doc" / "source").rglob("*.rst")
        named = {version for page in pages for version in WHEEL.findall(page.read_text())}
        self.assertEqual({setup["metadata"]["version"]}, named)

    def test_pictures_are_shown_and_small(self) -> None:
        pages = [ROOT / "README.md", *(ROOT / "doc" / "source").rglob("*.rst")]
        shown = {name for page in pages for name in PICTURE.findall(page.read_text())}
        pictures = {path.name: path.stat().st_size for path in (ROOT / "doc" / "source" / "images").iterdir()}
        self.assertEqual(shown, set(pictures))
        self.assertEqual({}, {name: size for name, size in pictures.items() if size > LARGEST_PICTURE})

    def test_mentions_are_found(self) -> None:
        paths = {one.path for one in mentions()}
        self.assertLessEqual({"common/states.py", "conductor/flows.py", "doc/specs/"}, paths)


IRONIC = """
    power: get_power_state set_power_state reboot get_supported_power_states
    management: get_supported_boot_devices set_boot_device get_boot_device restore_boot_device set_boot_mode
        get_boot_mode
        get_supported_boot_modes set_secure_boot_state get_secure_boot_state reset_secure_boot_keys_to_default
        clear_secure_boot_keys get_supported_indicators get_indicator_state set_indicator_state inject_nmi
        attach_virtual_media detach_virtual_media get_virtual_media get_node_health set_bmc_clock verify_bmc_clock
        get_sensors_data detect_vendor get_mac_addresses update_firmware
    bios: apply_configuration factory_reset cache_bios_settings post_configuration post_reset
    firmware: update cache_firmware_components retrieve_nic_components
    raid: create_configuration delete_configuration apply_configuration validate_raid_config volume_create_error_handler
        pre_create_configuration post_create_configuration pre_delete_configuration post_delete_configuration
    inspect: inspect_hardware
    boot: redfish-virtual-media redfish-https prepare_ramdisk clean_up_ramdisk prepare_instance clean_up_instance
    vendor: eject_vmedia create_subscription delete_subscription get_all_subscriptions get_subscription
    console: redfish-graphical
    idrac: clear_job_queue reset_idrac known_good_state idrac-redfish-virtual-media ServerBoot.1#FirstBootDevice
        serial_number SKU pxe_enabled DellSwitchConnection
    driver_info: deploy_kernel deploy_ramdisk rescue_kernel rescue_ramdisk deploy_iso rescue_iso bootloader
        external_http_url config_via_removable vmedia_transport_protocol
        redfish_address redfish_system_id redfish_username redfish_password redfish_verify_ca redfish_auth_type
        firmware_update_unresponsive_bmc_wait redfish_tls_minimum_version redfish_tls_ciphers
    options: connection_attempts connection_retry_interval connect_timeout read_timeout connection_cache_size auth_type
        use_swift swift_container swift_object_expiry_timeout kernel_append_params file_permission
        firmware_update_status_interval firmware_update_fail_interval firmware_update_wait_unresponsive_bmc
        firmware_update_required_successes firmware_update_validation_interval
        firmware_update_resource_validation_timeout firmware_update_bmc_timeout firmware_update_reboot_delay
        firmware_update_bmc_version_check_interval firmware_update_nic_starting_wait firmware_update_overall_timeout
        firmware_source raid_config_status_interval raid_config_fail_interval boot_mode_config_timeout verify_ca
        tls_minimum_version tls_ciphers enable_verify_bmc_clock default_inspection_hooks inspection_hooks
        post_boot_retry_attempts post_boot_retry_delay power_on_conflict_retry_attempts
        power_on_conflict_retry_interval enable_vmedia_insert_polling vmedia_insert_timeout vmedia_insert_poll_interval
"""
"""What the Redfish interfaces of Ironic 39 have that users, operators or other drivers can name."""


class RedfishTest(testtools.TestCase):
    """The comparison with Ironic's Redfish is whole, and proved."""

    def setUp(self) -> None:
        super().setUp()
        self.text = REDFISH.read_text()
        self.rows = [row for row in spec_tables.cells_of(self.text) if row[0] != "Ironic 39"]

    def test_each_row_is_proved_or_says_why_not(self) -> None:
        self.assertGreater(len(self.rows), 50)
        wrong = []
        for ironic, ingot, proof in self.rows:
            tests = [test for _, test in LITERAL.findall(proof)]
            kind = re.match(r"Yes|Otherwise|No", ingot)
            if kind is None or (kind[0] == "No" and (tests or len(ingot.split()) < 4)):
                wrong.append(ironic)
            elif kind[0] != "No" and (not tests or not all(map(spec_tables.exists, tests))):
                wrong.append(ironic)
        self.assertEqual([], wrong)

    def test_nothing_that_ironic_has_is_left_out(self) -> None:
        named = {text for _, text in LITERAL.findall(self.text)}
        known = {word for word in IRONIC.split() if not word.endswith(":")}
        self.assertEqual(set(), known - named)


class SecurityTest(testtools.TestCase):
    """What operators read of security is proved: each claim names tests, and they exist."""

    def test_each_claim_has_a_test_that_exists(self) -> None:
        heading, table = SECURITY.read_text().split("* - Claim\n     - Tests\n")
        claims = [row.split("\n     - ") for row in table.split("   * - ")[1:]]
        named = {claim: [test for _, test in LITERAL.findall(proof)] for claim, proof in claims}
        wrong = {claim: [test for test in tests if not spec_tables.exists(test)] for claim, tests in named.items()}

        self.assertGreater(len(claims), 50)
        self.assertEqual([], [claim for claim, tests in named.items() if not tests])
        self.assertEqual({}, {claim: tests for claim, tests in wrong.items() if tests})
        self.assertEqual([], re.findall(r"tests\.\w+\.[\w.]*test_\w+", heading), "tests are named in the table")

    def test_nothing_listens_but_the_api_and_conductors_for_consoles(self) -> None:
        packages = ("api", "common", "conductor", "db", "drivers", "rpcapi")
        modules = [path for package in packages for path in (ROOT / package).rglob("*.py")]
        listening = [path for path in modules if LISTENS.search(path.read_text())]

        self.assertEqual([ROOT / "api" / "server.py", ROOT / "conductor" / "console_server.py"], listening)
