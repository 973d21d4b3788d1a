"""Entity tags (RFC 9110, section 13): If-Match and If-None-Match of a request, compared with what is there.

A tag is ``"<version>-<digest>"``: the version of the object (:attr:`ingot.db.models.Record.version`), and a digest of
the very bytes of the answer, which depend on the API version and on ``fields=`` as well. A request that reads is
compared with the whole tag. One that writes is compared with the version only, so that a client that read a part of a
node may write to it. An answer that is not about one row has a tag without a version, which is good for reading only.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from werkzeug.datastructures import Headers

from ingot.common import errors
from ingot.db import models

NODE = ("uuid", "revision", "created_at")
"""The columns that the version of a node is made of, and its uuid for messages."""

_MATCH, _NONE_MATCH = HEADERS = ("If-Match", "If-None-Match")
_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"', re.ASCII)
_LIST = re.compile(rf"\s*{_TAG.pattern}(\s*,\s*{_TAG.pattern})*\s*", re.ASCII)
_LONGEST = 2048
_FORM = 'Send * or entity tags in double quotes, as the header ETag has them: "17.abc-def".'


class Preconditions(NamedTuple):
    """The conditions of one request, by header: the tags, or None for ``*``."""

    given: Mapping[str, tuple[str, ...] | None]

    def check(self, noun: str, found: models.Row | models.Node) -> None:
        """Compare them with an object that is about to be written to.

        :param noun: what it is, for the message.
        :param found: needs what its version is made of, and uuid.
        :raises PreconditionFailed: it is not as the client knows it.
        """
        current = found.version
        for header, tags in self.given.items():
            # A weak tag keeps its W/: it does not say that what the client knows is all there is.
            named = tags is None or current in (tag.partition("-")[0] for tag in tags)
            if named != (header == _MATCH):
                raise self._failed_error(f"{noun} {found.uuid}", current, header)

    def check_answer(self, current: str) -> bool:
        """Compare them with the tag of an answer to a GET.

        :returns: whether the client has this answer already.
        :raises PreconditionFailed: If-Match does not name it.
        """
        match = self.given.get(_MATCH)
        if match is not None and current not in match:
            raise self._failed_error("The answer", current, _MATCH)
        if _NONE_MATCH not in self.given:
            return False
        known = self.given[_NONE_MATCH]
        return known is None or current in (tag.removeprefix("W/") for tag in known)

    def refuse_tags(self) -> None:
        """Refuse tags on a write that is not to one object. That something is there (``*``) holds.

        :raises PreconditionFailed: there are tags to compare.
        """
        if self.given.get(_MATCH) is not None:
            raise errors.PreconditionFailed(
                f"This URL has no entity tag, but {_MATCH} names {self._show_tags(_MATCH)}. Leave it out."
            )

    def _failed_error(self, what: str, current: str, header: str) -> errors.PreconditionFailed:
        return errors.PreconditionFailed(what=what, current=current, header=header, given=self._show_tags(header))

    def _show_tags(self, header: str) -> str:
        tags = self.given[header]
        return "*" if tags is None else ", ".join(f'"{tag}"' for tag in tags)[:200]


def read(headers: Headers, method: str, tagged: bool) -> Preconditions:
    """Return the conditions of a request.

    :param tagged: whether writing to its URL is writing to one object.
    :raises Invalid: a header cannot be read, or names tags where nothing has one.
    """
    conditions = Preconditions({name: _parse_tags(name, headers[name]) for name in HEADERS if name in headers})
    if method != "GET" and not tagged:
        conditions.refuse_tags()
    return conditions


def _parse_tags(name: str, text: str) -> tuple[str, ...] | None:
    if text.strip() == "*":
        return None
    if len(text) > _LONGEST or not _LIST.fullmatch(text):
        raise errors.Invalid(field=name, value=text, allowed=_FORM)
    return tuple((found[1] or "") + found[2] for found in _TAG.finditer(text))
