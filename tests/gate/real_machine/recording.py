"""Records what the real agent says, for tests/functional/agent_contract: ``devstack/real-machine.sh --record``."""

from typing import Any

from tests.functional.agent_contract import acts, recordings
from tests.functional.agent_contract.recorder import Recorder
from tests.gate.real_machine.bench import Bench


class RecordingTest(acts.Acts):
    """Each act with a machine in QEMU."""

    def start(self, boot_mode: str, **fields: Any) -> None:
        self.recorder = Recorder()
        self.bench = self.useFixture(Bench("recording", deploy={}, recorder=self.recorder))
        self.uuid = self.bench.enroll(boot_mode, **fields)
        self.user, self.arguments = self.bench.user, self.bench.kernel_arguments
        self.serial = self.bench.disk(1)["serial"]

    def ask(self, verb: str, state: str, **more: Any) -> None:
        self.bench.ask(self.uuid, verb, state, **more)

    def choose_image(self, **more: Any) -> None:
        self.bench.choose_image(self.uuid, "image.raw", **more)

    def wait_until_it_says(self, text: str) -> None:
        self.bench.wait_for_text(text)

    def finish(self, act: str) -> None:
        self.recorder.recording().save(recordings.STORED / f"{act}.json")
