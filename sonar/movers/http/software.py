"""Which software answers at the endpoints, by the name that it gives itself with each answer.

Some requests of a test are for the sake of XRootD and of what nobody knows; who is in ``PROMPT``
is spared them.
"""

import re

from sonar.movers.base import End
from sonar.movers.file_address import parsed
from sonar.movers.http.exchange import Reply

PROMPT = re.compile(r"(dcache|sonar-sandbox)\b", re.IGNORECASE)
"""Tells the checksum that it keeps of a file with its length, needs no look at a new name before
it takes a copy, and itself refuses a copy to a name that is taken. XRootD does none of these."""


class Software:
    """What the servers of endpoints were when they answered last."""

    def __init__(self) -> None:
        self._is_prompt: dict[tuple[str | None, str | None], bool] = {}

    def note(self, end: End, reply: Reply) -> None:
        """Keep who answered for an endpoint, unless it was another server."""
        if not reply.data_server:
            server = reply.headers.get("Server", "")
            self._is_prompt[_server_of(end)] = bool(PROMPT.match(server))

    def is_prompt(self, end: End) -> bool:
        """Say whether an endpoint's server is known to be one of ``PROMPT``."""
        return self._is_prompt.get(_server_of(end), False)


def _server_of(end: End) -> tuple[str | None, str | None]:
    address = parsed(end, end.url)
    return address.scheme, address.netloc
