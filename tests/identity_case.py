"""The API with tokens of Keystone, which need no Keystone: the middleware's own fixture knows them."""

from typing import Any

from keystoneauth1 import fixture as tokens
from keystoneauth1 import loading
from keystonemiddleware import auth_token, fixture
from oslo_config import cfg

from tests import api_case, database

ROLES = {
    "admin": ("admin", "manager", "member", "reader"),
    "manager": ("manager", "member", "reader"),
    "member": ("member", "reader"),
    "reader": ("reader",),
    "service": ("service",),
    "none": (),
}
"""Each role with those that Keystone adds to it."""

PROJECTS = ("owner", "lessee", "stranger")
"""Projects by what they have to do with the node in question; the same word is the project's id."""

ELEVATED = "elevated service"
PERSONS = (*(f"{where} {role}" for where in ("system", *PROJECTS) for role in ROLES), ELEVATED)
"""``<where> <role>``: who asks."""


def token_of(person: str) -> tokens.V3Token:
    """Return Keystone's description of a user's token."""
    where, _, role = person.rpartition(" ")
    token = tokens.V3Token(user_id=f"user-{person.replace(' ', '-')}", user_name=person)
    for name in ROLES[role]:
        token.add_role(name=name)
    if where == "system":
        token.set_system_scope()
    elif person == ELEVATED:
        token.set_project_scope(id="services", name="service")
    else:
        token.set_project_scope(id=where, name=where)
    return token


def configure(conf: cfg.ConfigOpts) -> None:
    """Set what an operator sets for Keystone; no server listens there."""
    group = "keystone_authtoken"
    for name, options in (*auth_token.list_opts(), (group, loading.get_auth_plugin_conf_options("password"))):
        conf.register_opts(options, group=name)
    conf.set_override("auth_strategy", "keystone")
    values = {
        "auth_type": "password",
        "auth_url": "http://127.0.0.1:9",
        "username": "ingot",
        "password": "secret",
        "www_authenticate_uri": "https://keystone.example/v3",
        "http_request_max_retries": 0,
        "service_token_roles_required": True,
    }
    for name, value in values.items():
        conf.set_override(name, value, group=group)


class IdentityCase(api_case.ApiCase):
    """``self.ask(person, method, path, body)`` is a request with a token."""

    def configure(self) -> None:
        configure(self.conf)

    def application(self) -> Any:
        known = self.useFixture(fixture.AuthTokenFixture())
        for person in PERSONS:
            known.add_token(token_of(person), person)
        return super().application()

    def ask(self, person: str, method: str, path: str, body: Any = None) -> api_case.Answer:
        return self.api(method, path, body, X_Auth_Token=person)

    def own_node(self, **values: Any) -> Any:
        """Return a node with an owner and a lessee."""
        return database.make_node(self.db, **{"owner": "owner", "lessee": "lessee", **values})
