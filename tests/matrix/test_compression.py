"""Large data are compressed at a level that costs little; pages stay Django's."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import RequestFactory

from matrix.api.compression import QuickGZipMiddleware

BODY = b"[1.5,2.5]" * 10_000
SMALL = b"[1]" * 300


def answered(response: HttpResponseBase, accept: str = "gzip, br") -> Any:
    request = RequestFactory().get("/", headers={"accept-encoding": accept})
    return QuickGZipMiddleware(lambda _: response)(request)


def data(body: bytes = BODY) -> HttpResponse:
    return HttpResponse(body, content_type="application/json", headers={"ETag": '"a"'})


def test_large_data_are_compressed_quickly_under_a_weak_tag():
    found = answered(data())
    assert found.content == gzip.compress(BODY, 1, mtime=0)
    assert found["Content-Encoding"] == "gzip"
    assert (found["ETag"], found["Vary"]) == ('W/"a"', "Accept-Encoding")
    assert found["Content-Length"] == str(len(found.content))


def test_a_client_without_gzip_gets_data_as_they_are():
    found = answered(data(), "br")
    assert (found.content, found["ETag"], found["Vary"]) == (BODY, '"a"', "Accept-Encoding")
    assert "Content-Encoding" not in found


@pytest.mark.parametrize("response", [HttpResponse(BODY), data(SMALL)])
def test_pages_and_small_answers_are_djangos(response: HttpResponse):
    before = response.content
    found = answered(response)
    assert found["Content-Encoding"] == "gzip"
    assert gzip.decompress(found.content) == before
    assert found.content != gzip.compress(before, 1, mtime=0)


def test_streamed_answers_are_djangos():
    found = answered(StreamingHttpResponse([BODY], content_type="text/csv"))
    assert gzip.decompress(b"".join(found.streaming_content)) == BODY
