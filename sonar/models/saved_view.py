"""Views that people keep: a name of their own for the address of a page."""

from __future__ import annotations

from django.conf import settings
from django.db import models

LONGEST_NAME = 80
LONGEST_ADDRESS = 2000


class SavedView(models.Model):
    """A page of Sonar that an account keeps: ``address`` is its path and query, without a host."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=LONGEST_NAME)
    address = models.CharField(max_length=LONGEST_ADDRESS)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"], name="saved_view_name_once_for_a_user"
            ),
        ]

    def __str__(self) -> str:
        return self.name
