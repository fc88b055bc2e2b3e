"""Times, and figures with their units, at which no line of a page breaks."""

import pytest
from django.utils.html import format_html

from matrix.templatetags.figures import whole


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("failing since 20 Nov 08:20 UTC, 16 of 17", "20 Nov 08:20 UTC,"),
        ("since 20 Nov 08:20:30 UTC.", "20 Nov 08:20:30 UTC."),
        ("at 0.30× the usual rate since Thu 19 Nov 20:45 UTC;", "Thu 19 Nov 20:45 UTC;"),
        ("from 4 of 10 sites (0.30×, since 19 Nov 20:45).", "19 Nov 20:45)."),
        ("All 16 tests have failed since 19 Nov 2025 20:45.", "19 Nov 2025 20:45."),
        ("from 22:00 UTC on", "22:00 UTC"),
        ("most recently 3 h ago: less often", "3 h ago:"),
        ("the last success was 30 h before", "30 h"),
        ("now 1\u202f230 MB/s with large files", "1\u202f230 MB/s"),
        ("288 GB a day", "288 GB"),
        ("due (in 12 min)", "12 min)"),
        ("8.3 % of them", "8.3 %"),
        ("elsewhere (37–57 %, 10 partners)", "(37–57 %,"),
        ("for 9 and 9, p = 0.012, as it seems", "p = 0.012,"),
        ("on average 1.67\n      MB/s", "1.67\n      MB/s"),
    ],
)
def test_a_time_or_a_figure_with_its_unit_is_kept_on_its_line(text, kept):
    before, _, after = text.partition(kept)
    assert whole(text) == f'{before}<span class="text-nowrap">{kept}</span>{after}'


@pytest.mark.parametrize("text", ["7 Days", "3 sites", "16 of 17 hosts", "pool12 s", "", "May 5"])
def test_other_words_break_where_they_may(text):
    assert whole(text) == text


def test_a_small_p_and_an_n_are_kept_on_their_line_though_a_sign_is_escaped():
    n, p = (f'<span class="text-nowrap">{text}</span>' for text in ("n = 9", "p &lt; 0.001"))
    assert whole("n = 9 and 9, p < 0.001") == f"{n} and 9, {p}"


def test_text_is_escaped_and_html_keeps_its_tags_and_attributes():
    assert whole("<b>3 h</b> & more") == (
        '&lt;b&gt;<span class="text-nowrap">3 h</span>&lt;/b&gt; &amp; more'
    )
    html = format_html('<b title="{}">{}</b>', "5 min > 3 min", "3 h ago")
    assert whole(html) == (
        '<b title="5 min &gt; 3 min"><span class="text-nowrap">3 h ago</span></b>'
    )
