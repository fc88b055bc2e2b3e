"""What is written at once is escaped as what a template writes, and pages hide their length."""

import gzip
import json
import math

from django.http import HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from isal import igzip

from matrix.http.compression import QuickGZipMiddleware, padded
from matrix.templatetags.long_parts import as_script, heads_and_cells, offered

EVIL = "<b>\"'&</b>"


def rendered(text: str, **values: object) -> str:
    return Template(text).render(Context(values))


def test_rows_and_offers_are_those_of_a_template():
    row = '<tr><th scope="row">{{ name }}</th><td>{{ one }}</td><td>{{ two }}</td></tr>\n'
    expected = rendered(row, name=EVIL, one=3, two="–") + rendered(row, name="a", one=0, two=EVIL)
    assert heads_and_cells([(EVIL, 3, "–"), ("a", 0, EVIL)]) == expected
    assert offered([EVIL, ""]) == rendered('<option value="{{ v }}">', v=EVIL) + '<option value="">'
    assert heads_and_cells([]) == offered([]) == ""


def test_json_in_a_page_cannot_end_its_script():
    value = {"name": "</script><!--&", "none": math.nan}
    text = as_script(value, 'a"b')
    assert text.startswith('<script id="a&quot;b" type="application/json">')
    body = text.partition(">")[2].removesuffix("</script>")
    assert not set("<>&") & set(body)
    assert json.loads(body) == {"name": "</script><!--&", "none": None}


def test_a_large_page_is_compressed_to_different_lengths():
    body = b"a page with a token " * 2000
    request = RequestFactory().get("/", headers={"accept-encoding": "gzip"})

    def sent() -> bytes:
        answer = HttpResponse(body)
        QuickGZipMiddleware(lambda _: answer).process_response(request, answer)
        assert answer["Content-Length"] == str(len(answer.content))
        return answer.content

    sizes = {len(sent()) for _ in range(20)}
    assert len(sizes) > 5
    assert gzip.decompress(sent()) == gzip.decompress(padded(igzip.compress(body, 1))) == body
