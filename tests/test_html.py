"""What tests read of a page is what its readers have of it."""

import pytest

from tests.html import Page

PAGE = Page("""
<section aria-labelledby="found"><h2 id="found">Found</h2>
  <table class="links wide"><tbody>
    <tr><th scope="row"><a href="/a/?x=1&amp;y=2" title="first">A</a></th>
      <td>1 &lt; <b>2</b></td></tr>
    <tr class="bad"><th scope="row">B</th><td>–<br>none</td></tr>
  </tbody></table>
  <script id="data" type="application/json">{"a": [1, "nobody reads this"]}</script>
</section>
<form><input type="hidden" name="kept" value="1"><input name="q" value="x y">
  <input type="checkbox" name="on" checked><input type="radio" name="off" value="1">
  <select name="size"><option value="">any</option><option selected>small</option></select>
  <textarea name="note">a
b</textarea><button name="send">Send</button></form>
""")


def test_a_part_is_chosen_and_read() -> None:
    found = PAGE.section("found")
    assert PAGE.words.startswith(found.words)
    assert found.words == "Found A 1 < 2 B – none"
    assert "nobody" not in found
    assert found.table() == [["A", "1 < 2"], ["B", "– none"]]
    assert found.by_head(".bad") == {"B": ["– none"]}
    assert found.links("table.wide.links [scope] a[title]") == [found.link("A")] == ["/a/?x=1&y=2"]
    assert found.parts('a[href^="/a"]') == found.parts('[title="first"]') != []
    assert found.parts("a.links") == found.parts('a[href="/a"]') == found.parts("td a") == []
    assert found.data("data")["a"][0] == 1


def test_a_form_says_what_it_sends() -> None:
    form = PAGE.part("form")
    assert form.hidden() == [("kept", "1")]
    assert dict(form.sent()) == {
        "kept": "1",
        "q": "x y",
        "on": "on",
        "size": "small",
        "note": "a\nb",
    }


@pytest.mark.parametrize("text", ["<p><b></p></b>", "<p>", "</p>"])
def test_a_part_that_is_not_closed_where_it_was_opened_is_an_error(text: str) -> None:
    with pytest.raises(AssertionError):
        Page(text).parts("p")


def test_what_is_not_there_or_there_twice_is_not_the_only_part() -> None:
    for chosen in ("th", "video"):
        with pytest.raises(AssertionError, match=f"parts are {chosen}"):
            PAGE.part(chosen)
    with pytest.raises(AssertionError, match="leads to"):
        PAGE.link("B")
