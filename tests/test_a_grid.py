"""The commands of docs/a-grid.md do what the page says, on an empty Sonar."""

from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest
from django.core.management import call_command

from sonar import scheduler
from sonar.models import Downtime, Schedule
from tests import a_grid
from tests.matrix.world import NOW


@pytest.mark.usefixtures("db", "at_noon")
def test_five_commands_lead_from_an_empty_sonar_to_a_mesh_that_knows_who_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    commands = a_grid.commands()
    assert len(commands) == 5
    with a_grid.storage() as url:
        a_grid.write(tmp_path, url)
        for words, expected in commands:
            call_command(*words)
            said = capsys.readouterr().out.replace(url, a_grid.RAL)
            assert OutputChecker().check_output(expected, said, ELLIPSIS), said
    scheduler.follow_registry(NOW)
    rows = Schedule.objects.values_list("source__name", "destination__name")
    assert len(rows) == 6 * 2
    names = {"RAL_DATADISK", "GLASGOW_DATADISK", "LANCS_DATADISK"}
    assert {end for pair in rows for end in pair} == names
    down = Downtime.endpoints_down(NOW)
    assert Schedule.objects.filter(source__in=down).count() == 4
    call_command(*commands[1][0])
    assert capsys.readouterr().out.startswith("cric-atlas: no changes\n")
