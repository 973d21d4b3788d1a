"""What is read of processes is that of their descendants, too."""

import os
import socket
import subprocess
import sys

import testtools

from benchmarks import processes


class ProcessesTest(testtools.TestCase):
    def test_a_process_that_began_in_between_counts(self) -> None:
        self.assertEqual(2.5, processes.cpu_between({1: 1.0, 2: 5.0}, {1: 2.0, 3: 1.5}))

    def test_this_process_and_its_child_are_seen(self) -> None:
        command = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout and child.stdin
            child.stdout.readline()
            self.assertEqual({os.getpid(), child.pid}, {os.getpid(), child.pid} & set(processes.cpu([os.getpid()])))
            found = processes.memory([child.pid])
            self.assertEqual(1, found["processes"])
            self.assertGreater(found["rss_mib"], found["pss_mib"])
            self.assertEqual(1, processes.threads([child.pid]))
            child.stdin.close()
        self.assertEqual({}, processes.cpu([child.pid]))

    def test_a_server_is_found_by_its_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.assertEqual([os.getpid()], processes.listening(server.getsockname()[1]))
