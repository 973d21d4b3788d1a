"""What implementations, and the hardware that they are tested on, cannot do: a row for each, with the reason."""

from ingot.driver_kit.contracts.suites import Lack

_NO_BMC = "There is no BMC: nothing can be silent, busy or guarded by a password."
_NO_SYSTEM = "Its power changes at once and always, and no system runs that could ignore it."
_KEEPS = "It keeps in the node what it is given, and knows no hardware that this could be compared with."
_NO_IPMI = "IPMI has no commands for it."
_NO_FAULTS = "The emulator works without fail, and has no faults to order."
_NO_BIOS = "The emulator has BIOS settings with libvirt only, not for the machines in its memory."
_NO_DISKS = "The emulator's machines in memory have no controllers and no disks."
_NO_UPDATES = "The emulator has no UpdateService."
_NO_EVENTS = "The emulator has no EventService."
_SAME_LINE = (
    "How requests are sent does not depend on the maker: RedfishGeneric shows it, and so does each hardware type."
)
_SAME_BOOT = "None of these interfaces depends on the maker's habits: RedfishGeneric shows it."

_LINE = ("*_bears_what_passes", "*_is_silent_*", "test_a_wrong_password*", "test_a_machine_that_does_not_obey*")
_PROFILES = "Redfish[!G]*"

LACKS: tuple[Lack, ...] = (
    *(Lack(_PROFILES, "*", test, _SAME_LINE) for test in _LINE),
    *(Lack(_PROFILES, f"{name}Contract", "*", _SAME_BOOT) for name in ("Console", "Deploy", "Rescue")),
    *(Lack("Fake", "*", test, _NO_BMC) for test in _LINE),
    Lack("Fake", "PowerContract", "test_a_soft_power_off_that_is_ignored*", _NO_SYSTEM),
    Lack("Fake", "PowerContract", "test_what_the_node_lacks_*", _NO_BMC),
    Lack("Fake", "ManagementContract", "test_an_interrupt_arrives", "Nor has that of Ironic.", "support inject_nmi"),
    Lack("Fake", "ManagementContract", "test_each_step_*", "It has no steps, as there is nothing beside the node."),
    Lack("Fake", "ManagementContract", "test_a_restart_*", _NO_BMC, "no clean step reset_bmc"),
    Lack("Fake", "ManagementContract", "test_a_moment_*", _NO_BMC, "no clean step set_bmc_clock"),
    Lack("Fake", "SensorsContract", "test_air_*", _NO_BMC),
    Lack("SushyTools", "SensorsContract", "test_air_*", _NO_FAULTS),
    Lack("Fake", "SecureBootContract", "*", "What a user asks for counts as done.", "no verify step read_boot_mode"),
    Lack("Fake", "VirtualMediaContract", "test_media_that_*", _KEEPS),
    Lack("Fake", "VirtualMediaContract", "*", "Ironic's cannot be read either.", "not support get_virtual_media"),
    *(Lack("Fake", f"{name}Contract", "*", _KEEPS) for name in ("Controller", "OutOfBand", "Registry", "Updates")),
    Lack("Fake", "SubscriptionsContract", "*", _NO_BMC),
    Lack("IPMI", "ManagementContract", "test_a_moment_*", _NO_IPMI, "no clean step set_bmc_clock"),
    Lack("IPMI", "ManagementContract", "test_a_restart_*",
         "The rack's BMCs stay, over IPMI: tests.functional.drivers.test_ipmi has one that goes and comes back."),
    Lack("IPMI", "SecureBootContract", "*", _NO_IPMI, "does not support set_secure_boot"),
    Lack("IPMI", "VirtualMediaContract", "test_a_bmc_*", _NO_IPMI),
    Lack("IPMI", "VirtualMediaContract", "*", _NO_IPMI, "ipmitool (management) does not support"),
    Lack("IPMI", "BIOSContract", "*", _NO_IPMI, "no-bios (bios) has no"),
    Lack("IPMI", "FirmwareContract", "test_each*", _NO_IPMI, "no-firmware (firmware) has no"),
    Lack("IPMI", "FirmwareContract", "*", _NO_IPMI),
    Lack("IPMI", "RAIDContract", "test_arrays*", _NO_IPMI, "no-raid (raid) has no"),
    Lack("IPMI", "RAIDContract", "*", _NO_IPMI),
    Lack("IPMI", "InspectContract", "*", "It inspects by the agent: see tests.unit.drivers.test_agent_inspect."),
    *(
        Lack("IPMI", f"{name}Contract", "*", _NO_IPMI)
        for name in ("Controller", "OutOfBand", "Registry", "Subscriptions", "Updates")
    ),
    Lack("SushyTools", "PowerContract", "test_a_soft_power_off_that_is_ignored*", _NO_FAULTS),
    Lack("SushyTools", "PowerContract", "test_a_machine_that_does_not_obey*", _NO_FAULTS),
    Lack("SushyTools", "ManagementContract", "test_each_boot_device_is_set_for_one_boot",
         "The emulator says Continuous, whatever is set.", "reference = {'boot_device': 'pxe', 'persistent': False}"),
    Lack("SushyTools", "ManagementContract", "test_each_boot_device_is_set_for_all_boots",
         "The emulator takes UefiHttp without a URL for Pxe.", "reference = {'boot_device': 'uefihttp'"),
    Lack("SushyTools", "ManagementContract", "test_an_interrupt_*", "The emulator has no such reset.", "answered 501"),
    Lack("SushyTools", "ManagementContract", "test_a_restart_*", "The emulator's managers have no reset.",
         "it cannot be reset"),
    Lack("SushyTools", "ManagementContract", "test_each_step_*", "The emulator cannot reset the keys of secure boot.",
         "/SecureBoot"),
    Lack("SushyTools", "BootContract", "test_the_agent_is_booted*", "The emulator says Continuous, whatever is set.",
         "reference = {'boot_device': 'pxe', 'persistent': False}"),
    Lack("SushyTools", "BIOSContract", "test_settings_that_are_none*", _NO_BIOS),
    Lack("SushyTools", "BIOSContract", "*", _NO_BIOS, "it has no Bios settings"),
    Lack("SushyTools", "RegistryContract", "*", _NO_BIOS),
    Lack("SushyTools", "FirmwareContract", "test_each*", _NO_UPDATES, "{'bmc'}"),
    Lack("SushyTools", "FirmwareContract", "*", _NO_UPDATES),
    Lack("SushyTools", "UpdatesContract", "*", _NO_UPDATES),
    Lack("SushyTools", "RAIDContract", "test_what_is_no_array*", _NO_DISKS),
    Lack("SushyTools", "RAIDContract", "test_no_step*", _NO_DISKS),
    Lack("SushyTools", "RAIDContract", "*", _NO_DISKS, "none has Volumes"),
    Lack("SushyTools", "ControllerContract", "*", _NO_DISKS),
    Lack("SushyTools", "OutOfBandContract", "test_a_bmc_*", _SAME_LINE),
    Lack("SushyTools", "OutOfBandContract", "*", "The emulator does not say how much memory such a machine has.",
         "does not say cpu_arch and memory_mb"),
    Lack("SushyTools", "VendorContract", "test_each_method*", _NO_EVENTS, "it has no EventService"),
    Lack("SushyTools", "VendorContract", "test_a_bmc*", _NO_EVENTS),
    Lack("SushyTools", "SubscriptionsContract", "test_subscriptions_that*", _NO_EVENTS),
    Lack("SushyTools", "SubscriptionsContract", "test_subscriptions_come*", _NO_EVENTS, "it has no EventService"),
)  # fmt: skip
