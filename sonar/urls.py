"""Every route. Each includes who may use it: see docs/routes.md."""

from django.contrib import admin
from django.urls import include, path

handler400 = "matrix.pages.errors.bad_request"
handler500 = "matrix.pages.errors.crashed"

urlpatterns = [
    path("", include("matrix.urls")),
    path("admin/", admin.site.urls),
]
