"""How a command of the agent fails: the classes of errors as the real agent names, numbers and words them."""

from typing import Any

FAILED = "FAILED"
# The real agent has one status for a mismatch in any kind of work, and named it after the first.
VERSION_MISMATCH = "CLEAN_VERSION_MISMATCH"

_CLASSES: dict[str, tuple[int, str]] = {
    "BlockDeviceEraseError": (500, "Error erasing block device"),
    "CleaningError": (500, "Clean step failed"),
    "CommandExecutionError": (500, "Command execution failed"),
    "DeploymentError": (500, "Deploy step failed"),
    "DeviceNotFound": (404, "Error finding the disk or partition device to deploy the image onto"),
    "HardwareManagerMethodNotFound": (500, "No HardwareManager found to handle method"),
    "ImageChecksumError": (500, "Error verifying image checksum"),
    "ImageDownloadError": (500, "Error downloading image"),
    "ImageWriteError": (500, "Error writing image to device"),
    "IncompatibleHardwareMethodError": (500, "HardwareManager method is not compatible with hardware"),
    "InvalidImage": (500, "The provided image is not valid for use"),
    "ServicingError": (500, "Service step failed"),
    "SoftwareRAIDError": (500, "Software RAID caused unknown error"),
    "VersionMismatch": (409, "Hardware managers version mismatch, reload agent with correct version"),
}
"""By name: the HTTP status that a command's error has in its ``code``, and its message."""

STEP_ERRORS = {"clean": "CleaningError", "deploy": "DeploymentError", "service": "ServicingError"}
"""By kind of work: what a step fails with when nothing more precise is known."""


class CommandError(Exception):
    """A command failed.

    :param kind: the class of the error, one of the table's.
    :param details: what happened.
    """

    def __init__(self, kind: str, details: str) -> None:
        super().__init__(details)
        self.kind = kind
        self.details = details
        self.code, self.message = _CLASSES[kind]

    @property
    def status(self) -> str:
        """Of the command."""
        return VERSION_MISMATCH if self.kind == "VersionMismatch" else FAILED

    def public(self) -> dict[str, Any]:
        return {"type": self.kind, "code": self.code, "message": self.message, "details": self.details}


class Refused(Exception):
    """The agent does not take a command; ``status`` is the HTTP status of its answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
