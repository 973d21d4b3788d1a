"""axe-core, which finds what keeps people from using a page: its script, and running it in a page."""

import fcntl
import json
from typing import Any

from playwright.sync_api import CDPSession

from tests.gate import environments

_SOURCES = environments.ROOT / "console"
_PLACE = environments.ROOT / ".gate" / "axe"
_NAME = "axe-core"
_MARK = ".made-from"
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")

_RUN = "axe.run(document, {{runOnly: {{type: 'tag', values: {tags}}}, resultTypes: ['violations']}})"


def load() -> str:
    """Return the script, in the version and with the checksum that the front end's lock file has.

    It has a folder of its own, as the gate may install the front end's packages anew at the same time.
    """
    lock = json.loads((_SOURCES / "package-lock.json").read_text())
    entry = lock["packages"][f"node_modules/{_NAME}"]
    own = {"devDependencies": {_NAME: entry["version"]}}
    packages = {"": own, f"node_modules/{_NAME}": entry}
    content = json.dumps({"lockfileVersion": lock["lockfileVersion"], "packages": packages})
    _PLACE.mkdir(parents=True, exist_ok=True)
    with _PLACE.with_suffix(".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        mark = _PLACE / _MARK
        if not mark.is_file() or mark.read_text() != content:
            (_PLACE / "package.json").write_text(json.dumps(own))
            (_PLACE / "package-lock.json").write_text(content)
            (_PLACE / ".npmrc").write_text((_SOURCES / ".npmrc").read_text())
            command = ("npm", "ci", "--no-progress", "--prefix", _PLACE)
            environments.run(*command, timeout=environments.BUILD_TIMEOUT_S, cwd=_PLACE)
            mark.write_text(content)
    return (_PLACE / "node_modules" / _NAME / "axe.min.js").read_text()


class Axe:
    """Runs axe in a page. It goes there by the debugger, for which the page's policy of content does not count."""

    def __init__(self, debugger: CDPSession) -> None:
        self._debugger = debugger
        self._script = load()

    def find_violations(self) -> list[str]:
        """Return what the page does against WCAG 2.2 AA: the rule, and the elements with the reason."""
        if not self._evaluate("typeof axe === 'object'"):
            self._evaluate(f"{self._script}; true")
        found = self._evaluate(_RUN.format(tags=json.dumps(_TAGS)))["violations"]
        return [
            f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}\n    {node['html'][:200]}"
            for rule in found
            for node in rule["nodes"]
        ]

    def _evaluate(self, expression: str) -> Any:
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._debugger.send("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            raise AssertionError(f"axe has failed: {answer['exceptionDetails']}")
        return answer["result"].get("value")
