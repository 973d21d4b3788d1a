"""No request is answered with 500, and each refusal says why."""

import json
import random
import uuid
from typing import Any

from ingot.api import routes
from ingot.api.web.fields import Body
from ingot.api.web.operations import Operation
from tests import api_case

TEXTS = (
    "",
    "n",
    "a" * 300,
    "\0",
    "é",
    "💥",
    "power on",
    "manage",
    "../..",
    "{}",
    "%s",
    "CUSTOM_A",
    "52:54:00:00:00:01",
)
SCALARS = (None, True, False, 0, -1, 1.5, 10**25, *TEXTS)
IDENTS = ("n", "%00", "%C3%A9", "%FF", "a%20b", "'", "x" * 300, "CUSTOM_A", "fake-hardware", api_case.HOST)
VALUES = ("", "0", "-1", "true", "n", "%00", "%FF", "a,b", "name", "desc", "1e9", "%C2%B2", "9" * 20, "fake-hardware")
KEYS = ("a", "interface", "step", "args", "priority", "logical_disks", "links", "meta_data", "image_source", "traits")
REQUESTS = 8
"""For each operation of the table of routes."""


class Junk:
    """Random requests that look almost right."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret depends on it

    def value(self, depth: int = 0) -> Any:
        kind = self.random.choice(("scalar", "scalar", "list", "object")) if depth < 3 else "scalar"
        if kind == "scalar":
            return self.random.choice(SCALARS)
        if kind == "list":
            return [self.value(depth + 1) for _item in range(self.random.randrange(3))]
        return {self.random.choice(KEYS): self.value(depth + 1) for _item in range(self.random.randrange(4))}

    def body(self, operation: Operation) -> Any:
        if isinstance(operation.body, Body) and self.random.random() < 0.8:
            names = list(operation.body.schema.document["properties"])
            return {name: self.value() for name in self.random.sample(names, min(len(names), 3))}
        if self.random.random() < 0.8:
            return [self.operation() for _operation in range(self.random.randrange(3))]
        return self.value()

    def operation(self) -> dict[str, Any]:
        path = "".join(
            f"/{self.random.choice((*KEYS, 'extra', 'name', 'properties', '0', '-', 'a~1b'))}" for _ in range(2)
        )
        return {"op": self.random.choice(("add", "replace", "remove")), "path": path, "value": self.value()}

    def url(self, route: routes.Route, operation: Operation) -> str:
        idents = (*IDENTS, str(uuid.uuid4()))
        parts = [self.random.choice(idents) if part.startswith("<") else part for part in route.path.split("/")]
        names = list(operation.query) or ["x"]
        query = [f"{self.random.choice(names)}={self.random.choice(VALUES)}" for _ in range(self.random.randrange(3))]
        return "/".join(parts) + ("?" + "&".join(query) if query else "")


class Robustness(api_case.ApiCase):
    def test_no_request_is_answered_500(self) -> None:
        self.node(name="n")
        junk = Junk(seed=1)
        for route in routes.ROUTES:
            for method, operation in route.operations.items():
                if operation.answer.media != "text/event-stream":  # that one does not end
                    for _number in range(REQUESTS):
                        self.check(junk, route, method, operation)

    def check(self, junk: Junk, route: routes.Route, method: str, operation: Operation) -> None:
        body = None if method in ("GET", "DELETE") else json.dumps(junk.body(operation)).encode()
        version = junk.random.choice(("1.1", "1.30", "1.60", "1.115"))
        answer = self.api(method, junk.url(route, operation), body, version)
        self.assertLess(answer.status, 500, f"{method} {route.path} {body!r}: {answer}")
        self.assertTrue(answer.status < 400 or answer.message, answer)
