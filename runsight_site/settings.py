"""Django settings, from the environment alone. `environment/` lists and checks every variable."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF

from runsight_site.environment import (
    LOOPBACK_HOSTS,
    PROJECT_DIR,
    kept_secret_key,
    prepared_folder,
    read_environment,
)

ENV = read_environment()
PACKAGE_DIR = Path(__file__).resolve().parent
# A clone keeps templates and static files at the top; the wheel carries them inside this package.
ASSET_DIR = PROJECT_DIR if (PROJECT_DIR / "templates" / "base.html").exists() else PACKAGE_DIR

RUNSIGHT_HOME = prepared_folder(ENV["RUNSIGHT_HOME"])
RUNSIGHT_URL = ENV.url
RUNSIGHT_EXECUTOR: str = ENV["RUNSIGHT_EXECUTOR"]
RUNSIGHT_CONCURRENCY: int = ENV["RUNSIGHT_CONCURRENCY"]
RUNSIGHT_LEASE_SECONDS: int = ENV["RUNSIGHT_LEASE_SECONDS"]
RUNSIGHT_QUEUE: str = ENV["RUNSIGHT_QUEUE"]
RUNSIGHT_DEMO: bool = ENV["RUNSIGHT_DEMO"]
RUNSIGHT_ADMIN_PASSWORD: str = ENV["RUNSIGHT_ADMIN_PASSWORD"]
RUNSIGHT_ALLOW_PRIVATE_PROVIDERS: bool = ENV["RUNSIGHT_ALLOW_PRIVATE_PROVIDERS"]
OPENAI_API_KEY: str = ENV["OPENAI_API_KEY"]
OPENAI_BASE_URL: str = ENV["OPENAI_BASE_URL"]
HOST: str = ENV["HOST"]
PORT: int = ENV["PORT"]
REDIS_URL: str = ENV["REDIS_URL"]
CELERY_BROKER_URL: str = ENV["CELERY_BROKER_URL"] or REDIS_URL

SECRET_KEY = ENV["RUNSIGHT_SECRET_KEY"] or kept_secret_key(RUNSIGHT_HOME)
SECRET_KEY_FALLBACKS: list[str] = ENV["RUNSIGHT_SECRET_KEY_FALLBACKS"]
RUNSIGHT_TRUSTED_PROXIES: int = ENV["RUNSIGHT_TRUSTED_PROXIES"]
DEBUG: bool = ENV["RUNSIGHT_DEBUG"]
ALLOWED_HOSTS = sorted(
    {*ENV["RUNSIGHT_ALLOWED_HOSTS"], urlsplit(RUNSIGHT_URL).hostname or "", *LOOPBACK_HOSTS}
)

INSTALLED_APPS = [
    "daphne",
    "runsight_site.apps.RunsightAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "django_ace",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "axes",
    "runsight_site",
    "workflows_app",
    "evals_app",
]

MIDDLEWARE = [
    "runsight_site.logging.request_id_middleware",
    "runsight_site.serving.clients.private_middleware",
    "django.middleware.security.SecurityMiddleware",
    # Before everything that writes a body; files that `collectstatic` has compressed pass it as they are.
    "runsight_site.serving.compression.CompressionMiddleware",
    "runsight_site.serving.static_files.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "runsight_site.urls"
ASGI_APPLICATION = "runsight_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ASSET_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runsight_site.pages.context.site",
            ],
        },
    },
]

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={ENV['RUNSIGHT_SQLITE_SYNCHRONOUS']};",
}
DATABASES: dict[str, dict[str, Any]] = {
    "default": ENV["DATABASE_URL"]
    or {"ENGINE": "django.db.backends.sqlite3", "NAME": RUNSIGHT_HOME / "runsight.sqlite3"}
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
    # A file, so that threads and other processes of a test see the same rows.
    DATABASES["default"]["TEST"] = {"NAME": RUNSIGHT_HOME / "test.sqlite3"}
else:
    # Each run under way holds a connection; requests, sockets and the executor's own threads share the rest.
    _options: dict[str, Any] = DATABASES["default"]["OPTIONS"]
    _options["pool"] = {"min_size": 1, "max_size": RUNSIGHT_CONCURRENCY + 16, "timeout": 10}
    # A process that was frozen in a transaction loses its locks after 8 s; whoever waits for one gives up before.
    _time_outs = "-c lock_timeout=5s -c statement_timeout=300s -c idle_in_transaction_session_timeout=8s"
    _options["options"] = f"{_time_outs} {_options.get('options', '')}".strip()  # the address's own win
    # A pool would hand out connections of a server that has been restarted since.
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if REDIS_URL:
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL]},
        }
    }
    CACHES: dict[str, Any] = {
        "default": {
            "BACKEND": "runsight_site.cache.ForgivingRedisCache",
            "LOCATION": REDIS_URL,
            "OPTIONS": {
                "serializer": "runsight_site.cache.JsonSerializer",
                "socket_connect_timeout": 1,
                "socket_timeout": 1,
            },
        }
    }
else:
    CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
    }
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = [
    "runsight_site.serving.log_in.PatientPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
LOG_IN_RATE: str | None = "30/minute"  # for each address; None for no limit
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "runsight_site.serving.clients.client_address"
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # asked inside, where there is no TLS
if ENV.is_https:
    SECURE_SSL_REDIRECT = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
CSRF_TRUSTED_ORIGINS = [RUNSIGHT_URL]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "runsight_site.formats"
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = prepared_folder(RUNSIGHT_HOME / "staticfiles")
STATICFILES_DIRS = [ASSET_DIR / "static"]
# Until `collectstatic` has run the files come straight from their packages.
_is_collected = (STATIC_ROOT / "staticfiles.json").exists()
WHITENOISE_USE_FINDERS = not _is_collected
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if _is_collected
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# More than any call takes, so that the call's own limit answers; serving/bodies.py bounds the rest earlier.
DATA_UPLOAD_MAX_MEMORY_SIZE = 33 * 1024 * 1024

REST_FRAMEWORK: dict[str, Any] = {
    # The token first: its challenge makes "nobody logged in" 401 and not 403.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "workflows_app.api.base.permissions.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["workflows_app.api.base.permissions.AccessPermission"],
    "DEFAULT_THROTTLE_CLASSES": ["workflows_app.api.base.permissions.RateThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["workflows_app.api.base.parsing.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "workflows_app.api.base.parsing.JsonAlways",
    "EXCEPTION_HANDLER": "workflows_app.api.base.errors.as_response",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
# For each token, and for each user's sessions together; None for no limit.
API_RATE: str | None = "6000/minute"
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Runsight",
    "DESCRIPTION": "Run workflows, evaluate every block, and know what became worse.",
    "VERSION": "1",
    "TAGS": [
        {"name": name}  # in this order; the others follow
        for name in ("workflows", "runs", "evaluate", "regressions", "dashboard", "souls")
    ],
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": False},  # or a link stands inside the button of each operation
    "SWAGGER_UI_FAVICON_HREF": "/static/img/favicon.svg",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "workflows_app.models.RunStatus",
        "NodeStatusEnum": "workflows_app.models.NodeStatus",
        "RegressionStateEnum": "evals_app.models.RegressionState",
    },
    "PREPROCESSING_HOOKS": ["workflows_app.api.base.openapi.only_the_api"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "workflows_app.api.base.openapi.add_errors",
        "workflows_app.api.base.openapi.add_summaries",
    ],
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "runsight_site.logging.line_formatter"}},
    "filters": {"throttle": {"()": "runsight_site.logging.ThrottleFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "runsight": {"level": "INFO"},
        "django.channels.server": {"level": "WARNING"},
        "axes": {"level": "ERROR"},
        "channels_redis.pubsub": {"filters": ["throttle"]},  # each second while Redis is away
    },
}
