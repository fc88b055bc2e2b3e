"""Routes of pages and API; reading is public unless SONAR_PUBLIC_READ is off."""

from __future__ import annotations

from django.urls import include, path

from matrix.views import matrix_page

urlpatterns = [
    path("", matrix_page, name="matrix"),
    path("api/", include("matrix.api.urls")),
]
