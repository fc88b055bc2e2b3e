"""Large data and streams are compressed at a level that costs little; pages stay Django's."""

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from isal import igzip

from matrix.http.compression import ARRAYS, QuickGZipMiddleware

BODY = b"[1.5,2.5]" * 10_000
SMALL = b"[1]" * 300


def answered(response: HttpResponseBase, accept: str = "gzip, br") -> Any:
    request = RequestFactory().get("/", headers={"accept-encoding": accept})
    return QuickGZipMiddleware(lambda _: response)(request)


def data(body: bytes = BODY, content_type: str = "application/json") -> HttpResponse:
    return HttpResponse(body, content_type=content_type, headers={"ETag": '"a"'})


@pytest.mark.parametrize("content_type", ["application/json", ARRAYS])
def test_large_data_are_compressed_quickly_under_a_weak_tag(content_type):
    found = answered(data(content_type=content_type))
    assert found.content == igzip.compress(BODY, 1, mtime=0)
    assert gzip.decompress(found.content) == BODY
    assert found["Content-Encoding"] == "gzip"
    assert (found["ETag"], found["Vary"]) == ('W/"a"', "Accept-Encoding")
    assert found["Content-Length"] == str(len(found.content))


def test_the_same_data_are_the_same_bytes():
    assert answered(data()).content == answered(data()).content


@pytest.mark.parametrize(
    "response", [data(), StreamingHttpResponse([BODY], content_type="text/csv")]
)
def test_a_client_without_gzip_gets_data_as_they_are(response):
    found = answered(response, "br")
    assert (found.getvalue(), found["Vary"]) == (BODY, "Accept-Encoding")
    assert "Content-Encoding" not in found


@pytest.mark.parametrize("response", [HttpResponse(BODY), data(SMALL)])
def test_pages_and_small_answers_are_djangos(response):
    before = response.content
    found = answered(response)
    assert found["Content-Encoding"] == "gzip"
    assert gzip.decompress(found.content) == before
    assert found.content != igzip.compress(before, 1, mtime=0)


@pytest.mark.parametrize("kind", ["text/csv; charset=utf-8", "application/x-ndjson"])
def test_each_piece_of_a_stream_leaves_whole_before_the_next_is_made(kind):
    made: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for number in range(5):
            made.append(b"%d,row\n" % number)
            yield made[-1]

    found = answered(StreamingHttpResponse(pieces(), content_type=kind))
    assert found["Content-Encoding"] == "gzip"
    assert "Content-Length" not in found
    reader, read = zlib.decompressobj(wbits=31), b""
    for packed in found.streaming_content:
        read += reader.decompress(packed)
        assert read == b"".join(made)
    assert (reader.eof, len(made)) == (True, 5)


def test_a_stream_that_breaks_off_has_no_end():
    def pieces() -> Iterator[bytes]:
        yield BODY
        raise ConnectionResetError

    found = iter(answered(StreamingHttpResponse(pieces(), content_type="text/csv")))
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(next(found)) == BODY
    with pytest.raises(ConnectionResetError):
        next(found)
    assert not reader.eof


def test_streamed_pages_are_djangos():
    found = answered(StreamingHttpResponse([BODY], content_type="text/html"))
    assert gzip.decompress(b"".join(found.streaming_content)) == BODY
