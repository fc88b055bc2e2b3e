"""The docs are true: every setting, command, route and library in the code is there, and back."""

import re
import shlex
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import get_args

from django.core.management import call_command
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from matrix.store.probes import NEXT_TICK
from sonar.movers.catalogue import MOVERS, MoverDescription
from sonar.obstacles.catalogue import NAMES

PROJECT = Path(__file__).resolve().parent.parent


def read(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


def first_cells(path: str) -> set[str]:
    """Every `name` in the first column of a page's tables."""
    rows = [line.split("|")[1] for line in read(path).splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_setting_is_documented_and_exists():
    text = "".join(path.read_text() for path in (PROJECT / "sonar/settings").glob("*.py"))
    names = set(re.findall(r'env[a-z.]*\W*"([A-Z0-9_]+)"', text))
    assert len(names) > 15
    assert first_cells("docs/settings.md") == names


def routes(resolver: URLResolver, prefix: str = "/") -> set[str]:
    found = set()
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            found.add(route)
        elif route.startswith("/admin"):
            found.add("/admin/")
        else:
            found |= routes(entry, route)
    return found


def test_every_route_says_who_may_use_it():
    assert first_cells("docs/routes.md") - {"/static/"} == routes(get_resolver())


def chosen(path: str) -> set[str]:
    """Names of the libraries that Sonar asks for itself."""
    return set(re.findall(r"^([A-Za-z][\w.-]*)(?:\[\S+\])?==", read(path), re.MULTILINE))


def explained() -> set[str]:
    rows = [
        line.split("|")[1]
        for line in read("docs/dependencies.md").splitlines()
        if line.startswith("| ")
    ]
    return {name.strip() for row in rows for name in row.split(",")} - {"library", "---"}


def test_every_library_has_its_reason_and_no_other_is_named():
    assert explained() == chosen(".requirements.in") | chosen(".requirements-dev.in")


def test_every_command_is_in_the_readme():
    commands = {path.stem for path in (PROJECT / "sonar/management/commands").glob("[a-z]*.py")}
    assert commands <= set(re.findall(r"manage\.py (\w+)", read("README.md")))


def row_of(mover: MoverDescription) -> str:
    """A mover as its page has it."""
    codes = [sorted(mover.schemes), mover.modes, sorted(mover.parameters)]
    schemes, modes, parameters = (f"`{' '.join(words)}`" if words else "nothing" for words in codes)
    needs = ", ".join(need.label for need in mover.needs) or "nothing"
    takes = ", ".join(sorted(mover.credentials)) or "none"
    clock = "its own" if mover.of_network else mover.clock
    cells = [f"`{mover.name}`", schemes, mover.label, modes, parameters, takes, needs, clock]
    rates = "of the network alone" if mover.of_network else "measured"
    return f"| {' | '.join(cells)} | {'simulated' if mover.simulated else rates} |"


def test_the_table_of_movers_is_that_of_their_descriptions():
    top, _, _ = read("docs/movers.md").partition("\n## ")
    table = [line for line in top.splitlines() if line.startswith("| ")]
    assert table[2:] == [row_of(mover) for mover in MOVERS]


def test_every_key_of_a_registry_file_is_in_its_page():
    from sonar.registry.file.sections import RegistryFile

    page = read("docs/registry.md")
    kinds = [section.annotation for section in RegistryFile.model_fields.values()]
    for section in [get_args(kind)[0] for kind in kinds]:
        for key in section.model_fields:
            assert key in page, f"{section.__name__}.{key}"


def test_the_table_of_what_waits_has_all_obstacles_in_their_order():
    reasons = [*NAMES, NEXT_TICK]
    assert sorted(first_cells("docs/operations.md") & set(reasons)) == sorted(reasons)
    rows = re.findall(r"^\| `([\w ]+)` \|", read("docs/operations.md"), re.MULTILINE)
    assert [row for row in rows if row in reasons] == reasons


def test_the_example_registry_file_of_the_page_loads(db):
    from sonar.registry import file

    example = re.search(r"```yaml\n(.*?)```", read("docs/registry.md"), re.DOTALL)
    assert example
    changes = file.load(example[1])
    assert changes.added["endpoints"] == ["UKI-SCOTGRID-GLASGOW_DATADISK"]


def test_the_meshes_by_filter_of_the_page_load_and_say_what_it_says(db, tmp_path):
    section = read("docs/registry.md").partition("## Meshes by filter")[2]
    example = re.search(r"```yaml\n(.*?)```\n\n    \$.*?\n(.*?)\n\n", section, re.DOTALL)
    assert example
    file, out = tmp_path / "uk.yaml", StringIO()
    file.write_text(example[1])
    call_command("load_registry", str(file), stdout=out)
    assert out.getvalue() == dedent(f"{example[2]}\n")


def test_the_commands_of_the_page_of_downtimes_run(db, tmp_path):
    """Each address stands for a file with what the page writes into one without downtimes."""
    page = read("docs/downtimes.md")
    empty = re.search(r"echo '(.+?)' > none\.xml +# for OSG: (\S+)\n", page)
    commands = re.findall(r"^    manage\.py (import_downtimes .+)$", page, re.MULTILINE)
    assert empty
    assert len(commands) == 3
    for command in commands:
        name, option, origin, _, *others = shlex.split(command)
        file, out = tmp_path / "none.xml", StringIO()
        file.write_text(empty[1 if origin == "gocdb" else 2])
        call_command(name, option, origin, str(file), *others, stdout=out)
        assert "announces 0 downtimes" in out.getvalue()
        assert ("nothing was changed" in out.getvalue()) == ("--dry-run" in others)


def test_nothing_names_a_path_of_a_machine():
    tracked = [*PROJECT.glob("docs/*.md"), PROJECT / "README.md"]
    for path in tracked:
        assert not re.search(r"(^|[\s`(])/(work|home|root)/", path.read_text()), path


def test_every_test_that_the_page_of_security_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", read("docs/security.md"))
    assert named
    for path, test in named:
        assert f"def {test}(" in read(path) if test else (PROJECT / path).is_file(), (path, test)


def test_every_sentence_on_what_is_given_away_learned_and_done_has_its_test():
    page = read("docs/security.md")
    for heading in ("a site gives away by taking part", "a reader can learn", "an operator can do"):
        section = page.partition(f"\n## What {heading}\n")[2].partition("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
        assert len(rows) >= 5
        without = [row for row in rows if "`tests/" not in row.strip("| ").rpartition(" | ")[2]]
        assert without == []


def test_the_questions_of_newcomers_are_answered_by_at_most_two_files_that_exist():
    _, _, table = read("docs/architecture.md").partition("\n## Where is it?\n")
    rows = re.findall(r"^\| .+\? \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) == 10
    for row in rows:
        paths = re.findall(r"`([^`]+)`", row)
        assert 1 <= len(paths) <= 2
        assert all((PROJECT / path).is_file() for path in paths), row
