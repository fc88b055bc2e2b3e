"""Every route. Each includes who may use it: see docs/routes.md."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

handler400 = "matrix.pages.errors.bad_request"
handler500 = "matrix.pages.errors.crashed"

# Django's takes PUT as well, as another way to POST.
LOGIN = LoginView.as_view(
    template_name="login.html", http_method_names=["get", "head", "options", "post"]
)

urlpatterns = [
    path("", include("matrix.urls")),
    path("login/", LOGIN, name="login"),
    path("logout/", LogoutView.as_view(next_page="matrix"), name="logout"),
    path("admin/", admin.site.urls),
]
