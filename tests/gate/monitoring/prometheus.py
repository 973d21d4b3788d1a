"""Debian's Prometheus on this host, for one test: it reads Ingot's processes each second."""

import json
import pathlib
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

import fixtures
import yaml

from ingot.rack import ports
from tests import patience

PATIENCE = patience.seconds(60)
FOLDER = pathlib.Path(__file__).parents[3] / "packaging" / "monitoring"


def promtool(*words: str, text: str | None = None, where: pathlib.Path | None = None) -> str:
    """Return what promtool says; it must not find a mistake."""
    done = subprocess.run(
        ["promtool", *words], input=text, capture_output=True, text=True, cwd=where, timeout=PATIENCE, check=False
    )
    if done.returncode or done.stderr.strip():
        raise AssertionError(f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


class Prometheus(fixtures.Fixture):
    """A server with our alerts, which fire at once instead of after some minutes.

    :param targets: addresses by the name of their job.
    """

    def __init__(self, targets: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._targets = targets

    def _setUp(self) -> None:
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        rules = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
        for group in rules["groups"]:
            for rule in group["rules"]:
                rule.pop("for", None)
        (folder / "ingot-alerts.yaml").write_text(yaml.safe_dump(rules))
        settings = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
        settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings["rule_files"] = [str(folder / "ingot-alerts.yaml")]
        for job in settings["scrape_configs"]:
            job["static_configs"] = [{"targets": list(self._targets[job["job_name"]])}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        self.url = f"http://127.0.0.1:{ports.tcp()}"
        self._log = folder / "prometheus.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *("prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder}/data"),
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.addCleanup(self._end)
        self.eventually(lambda: self._get("/-/ready"), "Prometheus is ready")

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression, each with ``metric`` (its labels) and ``value`` (when, and what)."""
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        found: list[dict[str, Any]] = json.loads(self._get(path))["data"]["result"]
        return found

    def list_firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {one["metric"]["alertname"] for one in self.query('ALERTS{alertstate="firing"}')}

    def eventually(self, check: Any, what: str) -> Any:
        """Return the first true answer of ``check``; meanwhile there may be no server.

        :raises AssertionError: there was none in time.
        """
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if answer := check():
                    return answer
            except OSError:
                pass
            if time.monotonic() > until:
                raise AssertionError(f"not within {PATIENCE:.0f} s: {what}\n{self._log.read_text()[-2000:]}")
            time.sleep(0.3)
