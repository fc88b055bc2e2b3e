"""What nobody wrote a sentence for: an error of a program, or of a library, ends its test too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sonar.movers.base import MoverError, Stopped, Where
from sonar.movers.watch import Watch

log = logging.getLogger(__name__)


class UnexpectedError(MoverError):
    """Something else than a MoverError was raised; nobody knows what is left of the work."""

    def __init__(self, error: Exception, where: Where) -> None:
        # Its own words are for operators: they may tell anything.
        name = type(error).__name__
        super().__init__(where, f"Sonar's own program failed ({name}): the log has the details")
        self.is_unsettled = True


@contextmanager
def as_failures(
    work: str, watch: Watch | None = None, *, where: Where = Where.CONTROL
) -> Iterator[None]:
    """Raise whatever goes wrong as MoverError; what is none goes into the log with its traceback.

    ``work`` says there what was being done; the formatter of the log takes secrets out. What goes
    wrong after the watch was stopped is Stopped: it may have closed what was in use.
    """
    try:
        yield
    except MoverError:
        raise
    except Exception as error:
        is_stopped = watch is not None and watch.stopped
        failure = Stopped() if is_stopped else UnexpectedError(error, where)
        failure.left_aside = MoverError(Where.SOURCE, "half of the source file may be left")
        if not is_stopped:
            log.exception("%s: an error that is no failure of storage", work)
        raise failure from error
