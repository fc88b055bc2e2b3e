"""A file whose age says whether a process goes round: what the check of a container looks at.

Such a check must cost next to nothing and ask neither database nor queue (docs/containers.md).
"""

import logging
from pathlib import Path

from sonar.notation.whole_files import written

log = logging.getLogger(__name__)


class HeartbeatFile:
    """The file of this process; it holds the seconds after which it is too old."""

    def __init__(self, path: Path | None, seconds: int) -> None:
        """Without a path there is no file, and nothing is said."""
        self._path = path
        self._text = f"{seconds}\n".encode()

    def beat(self) -> None:
        """Write the file anew; what cannot be written is told, and holds nobody up."""
        if self._path is None:
            return
        try:
            with written(self._path) as file:
                file.write(self._text)
        except OSError as error:
            log.warning("SONAR_HEARTBEAT_FILE could not be written: %s", error)
