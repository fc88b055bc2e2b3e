"""Routes of the API, all below /api/v1/."""

from __future__ import annotations

from django.urls import path, re_path

from matrix.api.errors import not_found
from matrix.api.matrix import MatrixView
from matrix.api.transfers import TransfersView

urlpatterns = [
    path("v1/matrix/", MatrixView.as_view(), name="api-matrix"),
    path("v1/transfers/", TransfersView.as_view(), name="api-transfers"),
    re_path("", not_found),
]
