"""Which views a wall shows in turn, as its address says it; and what a bad one is answered with."""

import pytest
from django.http import QueryDict

from matrix.pages.matrix.page import MOST_VIEWS, Rotation, WallPage, text_of
from matrix.query.forms import BadQueryError

pytestmark = pytest.mark.django_db


def read(text: str) -> WallPage:
    return WallPage.read(QueryDict(text))


def sentences(text: str) -> dict[str, list[str]]:
    with pytest.raises(BadQueryError) as caught:
        read(text)
    return caught.value.errors


def test_each_view_is_a_question_and_a_display_of_its_own(small_world):
    page = read("wall=1&views=size=small&views=rows=cloud%26only=stale&view=2")
    first, second = page.rotation.views
    assert (first.query.size, first.display.only) == ("small", ())
    assert (second.query.rows, second.display.only) == ("cloud", ("stale",))
    assert (page.query, page.display.only, page.display.wall) == (second.query, ("stale",), True)


@pytest.mark.parametrize(
    "text",
    [
        "wall=1",
        "size=small&only=stale&wall=1",
        "wall=1&views=size=small&views=",
        "wall=1&views=size=small&views=rows=cloud%26order=tier&every=2m&view=2",
        "wall=1&views=source_site=RAL&views=destination_site=RAL&every=45",
    ],
)
def test_every_wall_survives_its_own_address(small_world, text: str):
    page = read(text)
    assert page.url() == f"/?{text}"
    assert WallPage.read(QueryDict(page.url().partition("?")[2])) == page


def test_what_a_view_leaves_out_or_orders_otherwise_is_the_same_address(client, small_world):
    response = client.get(
        "/?views=?stat=mean%26size=small&wall=1&views=size=large&every=30s&view=1"
    )
    assert (response.status_code, response["Location"]) == (302, "/?wall=1&views=size=small&views=")


def test_the_turns_go_round(small_world):
    page = read("wall=1&views=size=small&views=size=medium&views=")
    turns = [page.turned(at).url() for at in (1, 2, 3, -1)]
    assert turns == [
        "/?wall=1&views=size=small&views=size=medium&views=&view=2",
        "/?wall=1&views=size=small&views=size=medium&views=&view=3",
        "/?wall=1&views=size=small&views=size=medium&views=",
        "/?wall=1&views=size=small&views=size=medium&views=&view=3",
    ]


def test_a_bad_view_is_named_with_what_is_wrong_with_it(client, small_world):
    errors = sentences("wall=1&views=size=small&views=size=huge%26order=size&views=colour=red")
    size, colour = errors["views"]
    assert size.startswith("In view 2, “size=huge&order=size”: size “huge” is not")
    assert size.endswith("use large, medium or small.") or "use small, medium or large." in size
    assert colour.startswith("In view 3, “colour=red”: There is no parameter “colour”")
    response = client.get("/?wall=1&views=size=huge&views=")
    assert response.status_code == 400
    assert "In view 1, " in response.content.decode()


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (
            "views=wall=1",
            "views",
            "“wall” applies to the whole wall display: omit it from the views.",
        ),
        (
            "views=view=2",
            "views",
            "“view” applies to the whole wall display: omit it from the views.",
        ),
        ("size=small&views=size=large", "size", "size must be part of a view"),
        ("only=stale&views=size=large", "only", "only must be part of a view"),
        ("views=&views=&view=3", "view", "view “3” does not exist: use a number from 1"),
        ("views=&views=&view=0", "view", "use a number from 1 to 2."),
        ("views=&views=&view=x", "view", "use a number from 1 to 2."),
        ("view=2", "view", "use 1, because there is only one view."),
        (
            "every=4s",
            "every",
            "“every” is “4s”, which is not a duration from 5 seconds to an hour.",
        ),
        ("every=2h", "every", "is not a duration from 5 seconds to an hour"),
        ("every=often", "every", "or a number with s, m or h, for example, 30s."),
        ("every=-5", "every", "is not a duration from 5 seconds to an hour"),
        ("every=5s&every=6s", "every", "“every” is given 2 times: give it only once."),
        (
            "&".join(["views="] * (MOST_VIEWS + 1)),
            "views",
            f"at most {MOST_VIEWS} views are allowed.",
        ),
    ],
)
def test_what_cannot_be_turned_is_refused(small_world, text: str, name: str, sentence: str):
    errors = sentences(f"wall=1&{text}")
    assert list(errors) == [name]
    assert sentence in errors[name][0]


def test_seconds_are_read_as_they_are_written(small_world):
    times = {"5": 5, "30s": 30, "2m": 120, "1h": 3600}
    assert {text: Rotation(every=text).seconds for text in times} == times


def test_a_view_alone_is_the_wall_itself_and_its_address_the_text(small_world):
    page = read("wall=1&views=size=small")
    assert page.url() == "/?size=small&wall=1"
    assert page.rotation == Rotation()
    page = read("rows=cloud&only=stale&wall=1")
    assert text_of(page) == "rows=cloud&only=stale"
