"""The log of the admin, in which stands what people change on pages, too."""

from typing import cast

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest


def keep_in_the_log(request: HttpRequest, row: Model, action: int, sentence: str) -> None:
    """Keep who did what with a row: ADDITION, CHANGE or DELETION of the admin's own models."""
    user = cast(User, request.user)
    LogEntry.objects.log_actions(user.pk, [row], action, sentence, single_object=True)
