"""Connections to agents: kept open while an agent lives, and trusting nothing but its own certificate."""

import functools
import logging
import re
import ssl

import requests
from requests import adapters

from ingot.common import errors, masking

_TOKEN = re.compile(r"(agent_token=)[^&\s\"']+")


def mask_token(text: str) -> str:
    """Return the text with the value of an agent token in a URL masked."""
    return _TOKEN.sub(rf"\1{masking.MASK}", text)


class _TokenFilter(logging.Filter):
    """Masks tokens: urllib3 logs the paths it requests, and the agent's protocol has the token there."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = mask_token(record.getMessage()), ()
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_TokenFilter())


class _PinnedAdapter(adapters.HTTPAdapter):
    """Verifies servers with the one certificate of its TLS context.

    A context and not ``verify``: that would need a file for each agent, and is overridden by variables of the
    environment.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: object) -> None:
        super().init_poolmanager(connections, maxsize, block, ssl_context=self._context, **options)

    def cert_verify(self, conn: object, url: str, verify: object, cert: object) -> None:
        """Do nothing: the base class would add the public certificate authorities to the context."""


def _build_context(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    return context


@functools.lru_cache(maxsize=256)
def open_session(url: str, certificate: str | None) -> requests.Session:
    """Return the session for an agent: the one that is open, if any; of many, the least used ones are dropped.

    :param certificate: PEM that the agent announced; None: the system's authorities decide.
    :raises AgentError: the certificate cannot be read.
    """
    session = requests.Session()
    session.trust_env = False  # neither proxies nor certificate bundles of this host are meant for agents
    if certificate:
        try:
            session.mount("https://", _PinnedAdapter(_build_context(certificate)))
        except (ssl.SSLError, ValueError) as exc:
            raise errors.AgentError(
                what=f"Calling the agent at {url}", reason=f"its certificate cannot be read: {exc}"
            ) from exc
    return session
