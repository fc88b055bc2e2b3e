"""Registry files that are no registry: each is a sentence with its line, and changes nothing."""

import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sonar.models import Site
from sonar.registry.file import reading
from sonar.registry.file.reading import RegistryError, parse
from tests.sonar.test_load_registry import GOOD, errors, load

pytestmark = pytest.mark.django_db


def laughs(levels: int, *, merged: bool = False) -> str:
    """Write little that means ten times as much with each level."""
    first = "l0: &l0 {a: 1}" if merged else "l0: &l0 [a]"
    lines = [first]
    for level in range(1, levels):
        ten = ", ".join([f"*l{level - 1}"] * 10)
        what = f"{{<<: [{ten}]}}" if merged else f"[{ten}]"
        lines.append(f"l{level}: &l{level} {what}")
    return "\n".join(lines)


DEEP, NAMED = "values are nested", "name (line 2):"
HOSTILE = {
    "deep lists": (
        "sites: " + "[" * 20_000 + "]" * 20_000,
        f"line 1: {DEEP} more than 20 levels deep",
    ),
    "deep mappings": ("sites:\n- " + "{a: " * 5_000 + "}" * 5_000, f"line 2: {DEEP} more than"),
    "deep blocks": ("- " * 600 + "a:", f"line 1: {DEEP} more"),
    "itself": ("sites: &a\n- *a\n", "line 2: the alias *a refers to a value"),
    "itself merged": ("sites:\n- &a {<<: *a}\n", "line 2: the alias *a refers to a value"),
    "itself as a key": ("sites:\n- &a {? *a : 1}\n", "line 2: the alias *a refers to"),
    "laughs": (laughs(10), "line 8: with the alias *l6 expanded, the file has more than"),
    "merged laughs": (laughs(10, merged=True), "the file has more than"),
    "unknown anchor": ("sites: *none\n", "line 1: not valid YAML: found undefined alias"),
    "a list as a key": ("sites:\n- {[a]: b}\n", "line 2: a key cannot be a list or a mapping"),
    "an object": ("sites: !!python/object:os.system {}\n", "line 1: not valid YAML: could not det"),
    "no date": ("sites:\n- {name: 2026-13-45}\n", "line 2: '2026-13-45' cannot be read"),
    "no number": ("sites:\n- {tier: !!int x}\n", "line 2: 'x' cannot be read"),
    "empty number": ("sites:\n- {tier: !!int ''}\n", "line 2: '' cannot be read"),
    "no flag": ("sites:\n- {tier: !!bool x}\n", "line 2: 'x' cannot be read"),
    "no timestamp": ("sites:\n- {tier: !!timestamp x}\n", "line 2: 'x' cannot be read"),
    "no base64": ("sites:\n- {tier: !!binary é}\n", "line 2: "),
    "endless number": (f"sites:\n- {{tier: {'1' * 5_000}}}\n", "line 2: '1111"),
    "a control character": ("sites:\n- {name: a\0b}\n", "line 2: not valid YAML: the character"),
    "NUL": ('sites:\n- {name: RAL, cloud: "a\\0b"}\n', "line 2: a string contains NUL or half"),
    "a line break in a size class": (
        'size_classes:\n- {name: "huge\\n", from_bytes: 1, test_bytes: 2}\n',
        f"size_classes[0].{NAMED} Use only letters, digits,",
    ),
    "a line break in a site": ('sites:\n- {name: "RAL\\n"}\n', f"sites[0].{NAMED} Use only"),
    "a line break in a credential": (
        'credentials:\n- {name: "glasgow\\n", hosts: [glasgow.example]}\n',
        f"credentials[0].{NAMED} A credential name may contain only",
    ),
    "half a character": (
        'sites:\n- {name: RAL, cloud: "\\uD800"}\n',
        "line 2: a string contains NUL",
    ),
    "two documents": ("sites: []\n---\nsites: []\n", "line 2: not valid YAML"),
    "no number at all": (
        "sites:\n- {name: RAL, wan_gbit_s: .nan}\n",
        "sites[0].wan_gbit_s (line 2)",
    ),
    "no end of a number": ("sites:\n- {name: RAL, latitude: .inf}\n", "sites[0].latitude (line 2)"),
}


@pytest.mark.parametrize(("text", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_a_sentence_with_its_line_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    found = errors(tmp_path, text)
    assert said in found
    assert len(found) < 1_000
    monkeypatch.setattr(sys, "stdin", StringIO(text))
    with pytest.raises(CommandError, match="- was not loaded; nothing was changed") as caught:
        call_command("load_registry", "-", stdout=StringIO())
    assert caught.value.returncode == 1
    assert said in str(caught.value)


def test_a_file_without_an_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 1_000)
    monkeypatch.setattr(sys, "stdin", Endless())
    for path in ("-", "/dev/zero"):
        with pytest.raises(CommandError, match="more than 1,000 characters"):
            call_command("load_registry", path, stdout=StringIO())


class Endless(StringIO):
    def read(self, size: int | None = -1) -> str:
        assert size is not None
        assert size > 0
        return "#" * size


def test_anchors_that_mean_a_little_are_fine(tmp_path: Path) -> None:
    text = GOOD.replace("sites:", "sites:\n  - &uk {name: LANCS, cloud: UK}", 1)
    load(tmp_path, text.replace("- {name: RAL, cloud: UK,", "- {<<: *uk, name: RAL,"))
    assert Site.objects.get(name="RAL").cloud == "UK"


@pytest.mark.parametrize(("depth", "said"), [(19, "sites"), (20, "more than 20 levels deep")])
def test_what_nests_just_so_deep_is_judged_by_what_it_is(depth: int, said: str) -> None:
    with pytest.raises(RegistryError, match=said):
        parse("sites: " + "[" * depth + "]" * depth)
