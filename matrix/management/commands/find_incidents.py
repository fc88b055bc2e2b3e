"""Look at the newest tests of all links for incidents now."""

import time
from collections import Counter
from typing import Any

from django.utils import timezone
from rich.console import Console

from matrix.answers.incidents import evaluate, words
from matrix.answers.words.phrases import counted
from sonar.alerting import incidents
from sonar.management.base import QuickCommand
from sonar.models import EvaluationRun
from sonar.notation.units import three_digits


class Command(QuickCommand):
    help = (
        "Look at the newest tests of all links for what is not as expected, and open, change and "
        "close incidents. Sonar does so by itself every SONAR_INCIDENTS_SECONDS; this does it now, "
        "and lists the incidents that are open. It is safe to run it again."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        console = Console(highlight=False, soft_wrap=True)
        began = time.monotonic()
        events = Counter(event.kind for event in evaluate.evaluate(timezone.now()))
        run = EvaluationRun.objects.get()
        changed = ", ".join(f"{count} {kind}" for kind, count in events.items()) or "nothing new"
        judged = (
            f"{counted(run.links, 'link')} judged in {three_digits(time.monotonic() - began)} s"
        )
        console.print(f"{judged}: {changed}.")
        for row in incidents.still_open():
            console.print(f"- {words.sentence(row)}")
