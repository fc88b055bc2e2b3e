"""Every route. Each includes who may use it: see docs/routes.md."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

handler400 = "matrix.pages.errors.bad_request"
handler500 = "matrix.pages.errors.crashed"

urlpatterns = [
    path("", include("matrix.urls")),
    path("logout/", LogoutView.as_view(next_page="matrix"), name="logout"),
    path("admin/", admin.site.urls),
]
