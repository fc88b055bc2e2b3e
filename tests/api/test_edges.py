"""The values that requests are made up of are what they are said to be, to the last byte sent."""

import json
import unicodedata
from random import Random

import pytest

from tests.api import edges


def test_a_name_is_sent_in_each_normal_form():
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert any(unicodedata.is_normalized(form, one) for one in edges.NORMAL_FORMS)
    assert len(set(edges.NORMAL_FORMS)) == 4


def test_json_carries_surrogates_where_something_stands_for_them():
    sent = edges.with_surrogates(json.dumps([*edges.STAND_INS, *edges.TEXTS]))
    assert sent.isascii()
    assert json.loads(sent) == [*edges.SURROGATES, *edges.TEXTS]


def test_what_is_sent_as_no_utf_8_is_none():
    for one in edges.NOT_UTF_8:
        with pytest.raises(UnicodeDecodeError):
            one.decode()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("from", "time"), ("cursor", "time"), ("starts_at", "time"), ("max_age", "duration"),
     ("large.age.max", "duration"), ("size_mean_bytes", "size"), ("large.mean_mb_s.min", "number"),
     ("page_size", "number"), ("seconds", "number"), ("source", "text"), ("name", "text")],
)  # fmt: skip
def test_a_parameter_goes_to_the_ends_of_its_kind(name: str, kind: str):
    assert edges.kind_of(name) == kind


def test_every_end_comes_up():
    chance = Random(1)
    written = {edges.written("from", chance) for _ in range(20_000)}
    assert written >= set(edges.TIMES) | set(edges.TEXTS) | set(edges.DIGITS)
    sent = {repr(edges.in_json("seconds", 1.0, chance)) for _ in range(20_000)}
    assert sent >= set(map(repr, edges.NUMBERS))
