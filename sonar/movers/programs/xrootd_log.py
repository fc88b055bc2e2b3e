"""What the client library of XRootD logs of a copy, in whichever program it works.

The words are the same from 4.12 to 6.1; where they are not found, nothing is known.
"""

import re
import time

from sonar.movers.programs.xrootd_files import VARIABLES

LOGGED = VARIABLES | {"XRD_LOGLEVEL": "Dump", "XRD_LOGMASK": "XRootDMsg"}
LOG_LINE = re.compile(r"^\[[0-9]{4}-[0-9]{2}-[0-9]{2} .*$", re.MULTILINE)
SYNCED = re.compile(r"\[XRootD *\] .* Got a kXR_ok response to request kXR_sync\b")
SERVER = re.compile(
    r"\] \[(?:[^\s\[\]@]*@)?((?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})\] Got "
)
REFUSED = re.compile(
    r"\[XRootD *\] .* Got a kXR_error response to request kXR_open \(.*\) (\[[0-9]+\] .*)"
)


class XrootdLog:
    """When the destination answered: that it is ready to copy, and then that it has copied."""

    def __init__(self) -> None:
        self.refusal = ""
        """With which words a server last refused to open a file, and its path among them."""
        self.data_server = ""
        """Host and port of the server that answered that it has copied, behind any redirect."""
        self._at: list[float] = []

    def read(self, line: str) -> None:
        """Take the next line, at the moment when it is logged."""
        if SYNCED.search(line):
            self._at.append(time.monotonic())
            if server := SERVER.search(line):
                self.data_server = server[1].lower()
        elif refused := REFUSED.search(line):
            self.refusal = refused[1]

    @property
    def answered(self) -> float | None:
        """Return when it had copied, on the monotonic clock; None if that was not heard."""
        return self._at[-1] if len(self._at) > 1 else None

    @property
    def between(self) -> float | None:
        """Return for how many seconds it copied; None if that was not heard."""
        return self._at[-1] - self._at[-2] if len(self._at) > 1 else None
