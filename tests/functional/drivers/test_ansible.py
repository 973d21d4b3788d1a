"""Playbooks run over SSH: the server is OpenSSH's on this host, and what would be a disk is a file."""

import contextlib
import getpass
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from typing import Any, ClassVar

import fixtures

from ingot.common import clock, errors, states
from ingot.drivers.interfaces import children, results
from ingot.rack import ports
from tests import http_handler, patience
from tests.functional.deployment.lab import FileServer
from tests.unit.drivers import fakes, http_agent, registry

IMAGE = bytes(range(256)) * 4096
SECRET = "token-of-the-registry"
MARK = "INGOT_TEST_PLACE"
"""In the environment of what a test starts: its directory."""

SLOW = """\
- hosts: ironic
  gather_facts: false
  tasks:
    - name: Sleep long
      command: sleep 4711
"""
CLEAN = """\
- hosts: ironic
  gather_facts: false
  tasks:
    - copy: {content: one, dest: "{{ place }}/one"}
      tags: [first]
    - copy: {content: two, dest: "{{ place }}/two"}
      tags: [second]
"""
SHOW = """\
- hosts: ironic
  gather_facts: false
  tasks:
    - copy: {{content: "{{{{ ironic | to_json }}}}", dest: "{said}"}}
"""
FETCH = """\
- hosts: ironic
  gather_facts: false
  tasks:
    - write_image:
        device: "{{{{ ironic.root_device }}}}"
        url: "{url}"
        disk_format: raw
        checksum: "sha256:{checksum}"
        authorization: "Bearer {secret}"
"""
STEPS = """\
- name: {name}
  interface: deploy
  priority: 30
  args: {{tags: {{value: [{tag}], description: what runs}}}}
"""


class SshAgent(http_agent.HttpAgent):
    """An agent with extension ssh, for an SSH server on this host."""

    def __init__(self, place: pathlib.Path, device: pathlib.Path) -> None:
        super().__init__()
        self._place, self.device = place, str(device)
        self.port = ports.tcp()
        self.host_key = self._make_key("host_key")
        self._configuration = place / "sshd_config"
        self._configuration.write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {place}/host_key\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {place}/authorized_keys\nPasswordAuthentication no\nUsePAM no\n"
            "Subsystem sftp internal-sftp\n"
        )
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        command = [shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd", "-D", "-f", str(self._configuration)]
        self._server = self._server, subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def _make_key(self, name: str) -> str:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._place / name)], check=True)
        return " ".join((self._place / f"{name}.pub").read_text().split()[:2])

    def replace_host_key(self) -> None:
        """Have another machine answer than the agent's: what the agent says of its host key is not its."""
        self.host_key = self._make_key("another_key")

    def add(self, name: str, **outcome: Any) -> dict[str, Any]:
        if name == "ssh.start_server":
            (self._place / "authorized_keys").write_text(self.posted[-1][1]["public_key"] + "\n")
            result = {"host_keys": [self.host_key], "root_device": self.device}
            return super().add(name, command_status="SUCCEEDED", command_result=result)
        return super().add(name, **outcome)

    def stop(self) -> None:
        web, server = self._server
        server.kill()
        server.wait()
        web.shutdown()
        web.server_close()


class AnsibleTest(fakes.DriverTestCase):
    columns: ClassVar[dict[str, Any]] = {
        "deploy_interface": "ansible",
        "boot_interface": "ipxe",
        "driver_info": {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"},
        "power_state": states.POWER_ON,
        "provision_state": states.DEPLOYING,
    }

    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.useFixture(fixtures.FakeLogger(level=0))
        self.device = self.place / "device"
        self.device.write_bytes(bytes(2 * len(IMAGE)))
        (self.place / "image.raw").write_bytes(IMAGE)
        self.files = self.useFixture(FileServer(self.place))
        self.agent = SshAgent(self.place, self.device)
        self.addCleanup(self.agent.stop)
        self.wait(self.listens, "the SSH server listens")
        self.useFixture(fixtures.EnvironmentVariable(MARK, str(self.place)))  # after the server, which has it not

    def wait(self, check: Any, what: str) -> None:
        deadline = time.monotonic() + patience.seconds(60)
        while not check():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.1)

    def listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.agent.port)) == 0

    def machine(self, *, options: dict[str, Any] | None = None, **info: Any) -> fakes.MemoryTask:
        """Return a task for a machine that its agent runs on; ``info`` is added to its driver_info."""
        self.options = {
            "enabled_deploy_interfaces": ["direct", "ansible"],
            "enabled_boot_interfaces": ["ipxe"],
            "service_catalog__endpoint_override": "http://10.0.0.1:6385/",
            "state_path": str(self.place / "state"),
            "ansible__ssh_port": self.agent.port,
            "ansible__playbooks_path": str(self.place) if "ansible_playbooks_path" in info else "",
            "ansible__default_username": getpass.getuser(),
            "ansible__default_python_interpreter": sys.executable,
            **(options or {}),
        }
        task = self.task(driver_info={**self.columns["driver_info"], **info})
        task.set(**self.agent.columns(), agent_last_heartbeat=clock.now(), properties={})
        task.set(
            instance_info={
                "image_source": f"{self.files.url}/image.raw",
                "image_os_hash_algo": "sha256",
                "image_os_hash_value": hashlib.sha256(IMAGE).hexdigest(),
                "image_disk_format": "raw",
            }
        )
        task.ports = [fakes.port()]
        self.addCleanup(children.end, task)
        return task

    def playbooks(self, **texts: str) -> str:
        """Return a directory with these files, and ours under their names."""
        directory = self.place / "playbooks"
        directory.mkdir()
        for name in ("deploy.yaml", "shutdown.yaml", "clean.yaml"):
            (directory / name).write_text(SLOW)
        (directory / "clean_steps.yaml").write_text(STEPS.format(name="second_one", tag="second"))
        for name, text in texts.items():
            (directory / f"{name}.yaml").write_text(text)
        return str(directory)

    def run_step(self, task: fakes.MemoryTask, call: Any) -> Any:
        deadline = time.monotonic() + patience.seconds(120)
        while time.monotonic() < deadline:
            answer = results.parse_result(call(), "under test")
            if not isinstance(answer, results.PollAfter):
                return answer
            self.waited = answer
            time.sleep(0.2)
        self.fail(f"it still waits: {answer}")

    def deploy(self, task: fakes.MemoryTask) -> Any:
        return self.run_step(task, lambda: task.driver.deploy.write_image(task))

    def processes(self) -> list[str]:
        """Return the command lines of what was started here: those of other tests have another mark."""
        mark, found = f"{MARK}={self.place}".encode(), []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text().replace("\0", " "))
        return found

    def left(self) -> list[pathlib.Path]:
        return list(self.place.glob("state/ansible/*/*"))

    def test_the_playbook_writes_the_image_with_a_key_that_is_good_once(self) -> None:
        task = self.machine()
        task.driver.deploy.validate(task)
        self.assertEqual(results.DONE, self.deploy(task))
        self.assertEqual(IMAGE, self.device.read_bytes()[: len(IMAGE)])
        self.assertIn("Ansible's task", self.waited.waits_for)
        self.assertEqual(([], []), (self.processes(), self.left()))
        first = (self.place / "authorized_keys").read_text()
        self.deploy(task)
        self.assertNotEqual(first, (self.place / "authorized_keys").read_text())
        self.assertNotIn("PRIVATE", self.log.output)

    def test_a_registry_is_asked_once(self) -> None:
        source = registry.Registry("Bearer")
        self.addCleanup(source.stop)
        source.tags["latest"] = json.dumps(source.manifest(IMAGE)).encode()
        task = self.machine(options={"oci__permit_fallback_to_http_transport": True})
        task.node.instance_info = {"image_source": f"oci://{source.host}/some/os"}
        self.assertEqual(results.DONE, self.deploy(task))
        self.assertEqual(IMAGE, self.device.read_bytes()[: len(IMAGE)])
        self.assertEqual(1, sum(path.startswith("/token") for path, _authorization in source.asked))

    def test_a_state_path_of_any_length_will_do(self) -> None:
        long = 107 - len("/s.") - 16 - len("/ansible/host/tmp12345678")
        for length in (long - 1, long, long + 1, 150):
            task = self.machine(options={"state_path": f"{self.place}/".ljust(length, "x"), "host": "host"})
            self.assertEqual(results.DONE, self.deploy(task), length)

    def test_a_registrys_token_does_not_go_where_it_redirects_to(self) -> None:
        """Registries keep images elsewhere, and a hostile one names any place."""
        asked = []

        def send(handler: http_handler.Handler) -> None:
            asked.append(handler.headers["Authorization"])
            handler.answer(200, IMAGE)

        def lead_on(handler: http_handler.Handler) -> None:
            asked.append(handler.headers["Authorization"])
            handler.answer(302, Location=elsewhere)

        elsewhere = self.useFixture(http_handler.FunctionServer(send)).url
        first = self.useFixture(http_handler.FunctionServer(lead_on)).url
        checksum = hashlib.sha256(IMAGE).hexdigest()
        directory = self.playbooks(deploy=FETCH.format(url=first, checksum=checksum, secret=SECRET))
        self.deploy(self.machine(ansible_playbooks_path=directory))
        self.assertEqual(IMAGE, self.device.read_bytes()[: len(IMAGE)])
        self.assertEqual([f"Bearer {SECRET}", None], asked)

    def test_what_is_not_the_image_is_not_left_on_the_disk(self) -> None:
        task = self.machine()
        task.node.instance_info["image_os_hash_value"] = "0" * 64
        failed = self.assertRaises(errors.StepFailed, self.deploy, task)
        self.assertIn("playbook deploy.yaml failed: task Write the image", str(failed))
        self.assertIn("its sha256 is", str(failed))
        self.assertEqual(bytes(len(IMAGE)), self.device.read_bytes()[: len(IMAGE)])

    def test_a_machine_with_another_host_key_is_not_talked_to(self) -> None:
        self.agent.replace_host_key()
        failed = self.assertRaises(errors.StepFailed, self.deploy, self.machine())
        self.assertIn("Host key verification failed", str(failed))
        self.assertEqual(bytes(len(IMAGE)), self.device.read_bytes()[: len(IMAGE)])

    def test_an_agent_cannot_say_more_than_a_key(self) -> None:
        self.agent.host_key += "\n* ssh-ed25519 AAAA"
        failed = self.assertRaises(errors.AgentError, self.deploy, self.machine())
        self.assertIn("host_keys; it must be a public key", str(failed))

    def test_an_agent_without_the_extension_needs_what_the_operator_knows(self) -> None:
        self.agent.lacks.add("ssh")
        failed = self.assertRaises(errors.StepFailed, self.deploy, self.machine())
        self.assertIn("known_hosts_file", str(failed))
        known, key = self.place / "known", self.place / "mine"
        known.write_text(f"[127.0.0.1]:{self.agent.port} {self.agent.host_key}\n")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        shutil.copy(f"{key}.pub", self.place / "authorized_keys")
        directory = self.playbooks(clean=CLEAN)
        task = self.machine(
            options={"ansible__known_hosts_file": str(known), "ansible__ansible_extra_args": f"-e place={self.place}"},
            ansible_key_file=str(key),
            ansible_playbooks_path=directory,
        )
        task.driver.deploy.validate(task)
        (step,) = task.driver.deploy.get_clean_steps(task)
        self.assertEqual(("second_one", 30), (step["step"], step["priority"]))
        self.run_step(task, lambda: task.driver.deploy.execute_clean_step(task, step))
        self.assertEqual((False, True), tuple((self.place / name).exists() for name in ("one", "two")))

    def test_a_step_whose_tags_fit_no_task_fails(self) -> None:
        directory = self.playbooks(clean=CLEAN, clean_steps=STEPS.format(name="nothing", tag="nothing"))
        task = self.machine(ansible_playbooks_path=directory)
        (step,) = task.driver.deploy.get_clean_steps(task)
        failed = self.assertRaises(
            errors.StepFailed,
            self.run_step,
            task,
            lambda: task.driver.deploy.execute_clean_step(task, step),
        )
        self.assertIn("no task has run", str(failed))

    def test_a_playbook_that_takes_too_long_is_killed_with_all_that_it_started(self) -> None:
        task = self.machine(options={"ansible__playbook_timeout": 6}, ansible_playbooks_path=self.playbooks())
        failed = self.assertRaises(errors.StepFailed, self.deploy, task)
        self.assertIn("it took longer than 6 s", str(failed))
        self.assertEqual(([], []), (self.processes(), self.left()))

    def test_a_playbook_ends_with_its_flow(self) -> None:
        task = self.machine(ansible_playbooks_path=self.playbooks())

        def sleeps() -> bool:
            answer = task.driver.deploy.write_image(task)
            return "Sleep long" in answer.waits_for

        self.wait(sleeps, "the playbook's task runs")
        self.assertNotEqual([], self.processes())
        task.driver.deploy.clean_up(task)
        self.assertEqual(([], []), (self.processes(), self.left()))

    def test_what_others_say_is_text_and_no_template(self) -> None:
        """Ansible would run it on the conductor's host, with all that the conductor may do."""
        said, owned = self.place / "said", self.place / "owned"
        template = f"{{{{ lookup('pipe', 'touch {owned}') }}}}"
        directory = self.playbooks(deploy=SHOW.format(said=said))
        task = self.machine(ansible_playbooks_path=directory)
        task.node.extra = {
            "of_user": template,
            template: [template, None],
            "__ansible_unsafe": 1,
            "<<": {"a": "\u2028"},
        }
        task.node.instance_info["image_note"] = template
        self.agent.device = template
        self.assertEqual(results.DONE, self.deploy(task))
        shown = json.loads(said.read_text())
        self.assertEqual(task.node.extra, shown["nodes"][0]["extra"])
        self.assertEqual((template, template), (shown["image"]["note"], shown["root_device"]))
        task = self.machine(ansible_playbooks_path=directory, ansible_python_interpreter=template)
        self.assertRaises(errors.StepFailed, self.deploy, task)
        self.assertFalse(owned.exists())

    def test_mistakes_are_named(self) -> None:
        (self.place / "link").symlink_to("/etc")
        elsewhere = ("/nowhere", "..", f"{self.place}x", f"{self.place}/link")
        for info, words in (
            ({"ansible_deploy_playbook": "../etc/passwd"}, "ansible_deploy_playbook"),
            ({"ansible_clean_playbook": "none.yaml"}, "ansible_clean_playbook"),
            ({"ansible_playbooks_path": "nowhere"}, f"name of a file in {self.place}/nowhere"),
            *(({"ansible_playbooks_path": path}, "ansible_playbooks_path: .*a directory in it") for path in elsewhere),
            ({"ansible_key_file": "/nowhere"}, "ansible_key_file"),
        ):
            task = self.machine(**info)
            refused = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task)
            self.assertRegex(str(refused), words)
        directory = pathlib.Path(self.playbooks())
        for text, words in (
            ("{", "cannot be read as YAML"),
            ("a: b", "must be a list"),
            ("- name: x\n  interface: raid\n", "interface of step x must be deploy"),
            ("- name: x\n  interface: deploy\n", "args.tags.value of step x"),
            ("- {name: x, interface: deploy, priority: -1}", "priority of step x"),
            ("- {name: x, interface: deploy, tags: [a]}", "tags"),
        ):
            (directory / "clean_steps.yaml").write_text(text)
            task = self.machine(ansible_playbooks_path=str(directory))
            refused = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task)
            self.assertIn(words, str(refused))
