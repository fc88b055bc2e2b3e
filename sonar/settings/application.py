"""What Django puts together: applications, middleware, templates, static files, its notation."""

from whitenoise.compress import Compressor

from sonar.settings.databases import DATABASE_READ_URL
from sonar.settings.environment import PROJECT_DIR, SONAR_HOME

INSTALLED_APPS = [
    "sonar.admin.site.SonarAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "csp",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "allauth.account",
    "allauth.socialaccount",
    "sonar",
    "matrix",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "matrix.http.compression.QuickGZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "matrix.http.page_rights.RightsFirst",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "matrix.pages.errors.ErrorAnswers",
    "matrix.http.health.CountRequests",
]
if DATABASE_READ_URL:
    MIDDLEWARE.append("matrix.http.replica.ReadsFromReplica")
ROOT_URLCONF = "sonar.urls"
WSGI_APPLICATION = "sonar.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
# Where Django writes a time by itself, as in the admin: 2026-11-24 14:20.
FORMAT_MODULE_PATH = "sonar.notation.dates"

STATIC_URL = "static/"
STATIC_ROOT = SONAR_HOME / "static"
STATICFILES_DIRS = [PROJECT_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "sonar.processes.static.AskedFor",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "sonar.processes.static.HashedNames"},
}
# Each is compressed once, by the name that pages ask for.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
# Source maps are half of all bytes, and only developers' tools ask for them.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
