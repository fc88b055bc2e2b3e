"""What is written at once is escaped as what a template writes, and pages hide their length."""

import gzip
import json
import math
from datetime import UTC, datetime

from django.http import HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.utils.html import escape
from isal import igzip

from matrix.answers.site.reports import Partner, ReportCell
from matrix.http.compression import QuickGZipMiddleware, padded
from matrix.pages.parts.controls import Choice
from matrix.pages.site.written_rows import both_directions, strip_rows
from matrix.pages.table.columns import TableCell
from matrix.pages.table.page import escaped_cells, written_cell
from matrix.templatetags.long_parts import (
    as_script,
    heads_and_cells,
    listed,
    offered,
    options,
    switched,
)

EVIL = "<b>\"'&</b>"
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def rendered(text: str, **values: object) -> str:
    return Template(text).render(Context(values))


def test_rows_and_offers_are_those_of_a_template():
    row = '<tr><th scope="row">{{ name }}</th><td>{{ one }}</td><td>{{ two }}</td></tr>\n'
    expected = rendered(row, name=EVIL, one=3, two="–") + rendered(row, name="a", one=0, two=EVIL)
    assert heads_and_cells([(EVIL, 3, "–"), ("a", 0, EVIL)]) == expected
    assert offered([EVIL, ""]) == rendered('<option value="{{ v }}">', v=EVIL) + '<option value="">'
    assert heads_and_cells([]) == offered([]) == ""
    chosen = [(EVIL, EVIL, True), ("a", "b", False)]
    line = '<option value="{{ v }}"{% if is_it %} selected{% endif %}>{{ w }}</option>\n'
    written = [rendered(line, v=value, w=words, is_it=is_it) for value, words, is_it in chosen]
    assert options(chosen) == "".join(written)


def test_links_that_change_a_page_are_those_of_a_template():
    links = [Choice(EVIL, EVIL, True, EVIL), Choice("b", "c", chosen=False)]
    for write in (listed, switched):
        first, second = write(links).splitlines()
        assert EVIL not in first
        assert first.count(escape(EVIL)) == 3
        assert 'aria-current="true"' in first
        assert ("aria-current" in second, "title" in second, "small" in second) == (False,) * 3


def test_rows_of_tables_are_escaped_and_have_a_dash_for_what_is_missing():
    cell = TableCell(EVIL, EVIL, "number", marks=(EVIL,), lead=EVIL)
    expected = rendered(
        '<td class="number opens" title="{{ e }}" data-label="{{ e }}">'
        '<small class="state-word">{{ e }}</small> <span data-pad=".0">{{ e }}</span>'
        " <small>{{ e }}</small></td>",
        e=EVIL,
    )
    (escaped,) = escaped_cells([cell])
    assert written_cell(escaped, "opens", EVIL, ".0") == expected
    values = dict.fromkeys(["mean", "std", "last", "now", "usual", "since"], math.nan)
    ends = ReportCell(EVIL, EVIL, ok=0, failed=2, state="failed", level="unknown", **values)
    row = both_directions([Partner(EVIL, None, (ends, EVIL))], NOW, EVIL, {})
    assert EVIL not in row
    assert row.count(escape(EVIL)) == 9
    assert 'title="no result in this time range">–' in row
    assert 'title="not measured in both directions">–' in row
    assert "not tested, no results" in row
    link = {"url": EVIL, "kind": "failed", "words": EVIL, "why_no_rate": EVIL}
    assert EVIL not in strip_rows([("sent to", [link, None])])


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
