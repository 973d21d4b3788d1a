"""The API's description against answers: everything that was measured is answered as it says."""

from typing import Any

from tests import api_case, described
from tests.functional.api import test_contract_replay


class Replay(test_contract_replay.Replay):
    """All measured requests again; each answer is compared with the description."""

    def setUp(self) -> None:
        self.objections: list[str] = []
        super().setUp()
        self.addCleanup(lambda: self.assertEqual([], sorted(set(self.objections))))

    def api(
        self, method: str, path: str, body: Any = None, version: str | None = api_case.LATEST, **headers: str
    ) -> Any:
        answer = super().api(method, path, body, version, **headers)
        told = described.objection(self.http.application, method, path, answer)
        if told is not None:
            self.objections.append(told)
        return answer
