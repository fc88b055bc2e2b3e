"""Answers that leave while they are made: a few at a time, and cut off where they break off.

A stream keeps a thread of the web process, and mostly a connection to the database, for as long
as its reader takes. So only SONAR_STREAMS of them are sent at once by each process, and a
reader who takes nothing for a minute is left.
"""

import errno
import logging
from collections.abc import Generator, Iterator
from contextlib import closing
from threading import BoundedSemaphore

from django.conf import settings
from django.http import StreamingHttpResponse
from psycopg.abc import Buffer
from rest_framework.request import Request

from matrix.api.rendering import named
from matrix.http.exceptions import NotNow
from matrix.http.negotiation import CONTENT_TYPES
from matrix.store.data_version import end_snapshot

log = logging.getLogger(__name__)

Pieces = Generator[bytes, None, None]

# What an answer has in memory at once.
PIECE_BYTES = 64_000
RETRY_SECONDS = 10
# A piece that the reader has not taken after so long ends the stream.
PATIENCE_SECONDS = 60
places = BoundedSemaphore(settings.SONAR_STREAMS)


def stream(request: Request, pieces: Pieces, form: str, name: str) -> StreamingHttpResponse:
    """Answer with pieces as they are made; raise NotNow if as many as may be are under way.

    The first piece is made here: an error until then still has a status. A later one cuts the
    connection, so that nobody takes a part for the whole.
    """
    sending: Iterator[bytes] = iter(())
    # Whoever asks for the head alone gets it at once: nothing is made.
    if request.method != "HEAD":
        # That of the call would end with it, while the pieces are still being made.
        end_snapshot()
        sending = in_place(pieces)
        # Only what has begun notices that it is closed.
        next(sending)
    response = StreamingHttpResponse(sending, content_type=CONTENT_TYPES[form])
    if connection := request.META.get("gunicorn.socket"):
        connection.settimeout(PATIENCE_SECONDS)
    return named(response, form, name)


def in_place(pieces: Pieces) -> Pieces:
    """Give nothing, once the first piece is there; then all pieces, in a place of their own."""
    if not places.acquire(blocking=False):
        most = settings.SONAR_STREAMS
        raise NotNow(
            f"The maximum number of downloads ({most}) is already running: try again in "
            f"{RETRY_SECONDS} seconds.",
            RETRY_SECONDS,
        )
    try:
        with closing(pieces):
            first = next(pieces, b"")
            yield b""
            yield first
            try:
                yield from pieces
            except Exception as error:
                log.warning(
                    "A response ended early and was truncated: %s", " ".join(str(error).split())
                )
                # For gunicorn the reader has gone: it closes the connection without an end.
                raise ConnectionResetError(errno.ECONNRESET, "the response ended early") from error
    finally:
        places.release()


def by_piece(lines: Iterator[Buffer], head: bytes = b"") -> Pieces:
    """Put lines together into pieces; the first goes alone, as somebody waits for it."""
    piece = bytearray(head)
    piece += next(lines, b"")
    yield bytes(piece)
    piece.clear()
    for line in lines:
        piece += line
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
