"""Who may do what, one row per path: add yours here when you add a path.

A row maps each method a path has to the least role that may use it: `public` (without log-in), `anyone` (logged in,
whatever the role), `viewer`, `operator`, `editor`, `admin`. `test_access.py` tries every path, method and role.
"""

ROLES = ("viewer", "operator", "editor", "admin")

# What stands in a path for its parameters, first match first: a text, or the name of a row that the test makes.
SAMPLES = {
    "regressions/<uuid:pk>": "regressions/{regression}",
    "<slug:slug>": "sample",
    "<int:number>": "1",
    "<uuid:pk>": "{run}",
    "<uuid:run_id>": "{run}",
    "<uuid:other_id>": "{run}",
    "<int:pk>": "1",
    "<str:token>": "nobody",
}

API = {
    "metrics": {"GET": "viewer"},
    "api/": {"GET": "viewer"},
    "api/schema/": {"GET": "viewer"},
    "api/workflows/": {"GET": "viewer", "POST": "editor"},
    "api/workflows/validate/": {"POST": "viewer"},
    "api/workflows/schema/": {"GET": "viewer"},
    "api/workflows/<slug:slug>/": {"GET": "viewer", "PUT": "editor", "PATCH": "editor"},
    "api/workflows/<slug:slug>/versions/": {"GET": "viewer"},
    "api/workflows/<slug:slug>/versions/<int:number>/": {"GET": "viewer"},
    "api/workflows/<slug:slug>/validate/": {"POST": "viewer"},
    "api/workflows/<slug:slug>/runs/": {"GET": "viewer", "POST": "operator"},
    "api/workflows/<slug:slug>/trends/": {"GET": "viewer"},
    "api/workflows/<slug:slug>/regressions/": {"GET": "viewer"},
    "api/workflows/<slug:slug>/baseline/": {"GET": "viewer", "PUT": "editor", "DELETE": "editor"},
    "api/runs/": {"GET": "viewer"},
    "api/runs/ingest/": {"POST": "operator"},
    "api/runs/<uuid:pk>/": {"GET": "viewer"},
    "api/runs/<uuid:pk>/nodes/": {"GET": "viewer"},
    "api/runs/<uuid:pk>/events/": {"GET": "viewer"},
    "api/runs/<uuid:pk>/eval/": {"GET": "viewer"},
    "api/runs/<uuid:pk>/regressions/": {"GET": "viewer"},
    "api/runs/<uuid:pk>/cancel/": {"POST": "operator"},
    "api/runs/<uuid:pk>/rerun/": {"POST": "operator"},
    "api/souls/": {"GET": "viewer", "POST": "editor"},
    "api/souls/<slug:slug>/": {"GET": "viewer", "PUT": "editor", "PATCH": "editor"},
    "api/souls/<slug:slug>/history/": {"GET": "viewer"},
    "api/evaluate/": {"POST": "viewer"},
    "api/evaluate/backtest/": {"POST": "viewer"},
    "api/assertion-types/": {"GET": "viewer"},
    "api/regressions/": {"GET": "viewer"},
    "api/regressions/<uuid:pk>/": {"GET": "viewer"},
    "api/regressions/<uuid:pk>/acknowledge/": {"POST": "operator"},
    "api/regressions/<uuid:pk>/resolve/": {"POST": "operator"},
    "api/dashboard/": {"GET": "viewer"},
    "api/dashboard/attention/": {"GET": "viewer"},
}

PAGES = {
    "api/docs/": {"GET": "viewer"},
    "api/docs/try/": {"GET": "viewer"},
    "healthz": {"GET": "public"},
    "favicon.ico": {"GET": "public"},
    "readyz": {"GET": "public"},
    "login/": {"GET": "public", "POST": "public"},
    "login/once/<str:token>/": {"GET": "public"},
    "logout/": {"POST": "anyone"},
    "styleguide/": {"GET": "admin"},
    "": {"GET": "viewer"},
    "dashboard/figures/": {"GET": "viewer"},
    "dashboard/now/": {"GET": "viewer"},
    "start/": {"GET": "editor", "POST": "editor"},
    "start/check/": {"POST": "viewer"},
    "workflows/": {"GET": "viewer"},
    "workflows/<slug:slug>/": {"GET": "viewer"},
    "workflows/<slug:slug>/trend/": {"GET": "viewer"},
    "workflows/<slug:slug>/now/": {"GET": "viewer"},
    "workflows/<slug:slug>/run/": {"GET": "operator", "POST": "operator"},
    "workflows/<slug:slug>/edit/": {"GET": "editor", "POST": "editor"},
    "workflows/<slug:slug>/baseline/": {"POST": "editor"},
    "workflows/<slug:slug>/versions/<int:number>/": {"GET": "viewer"},
    "workflows/<slug:slug>/block/": {"GET": "viewer"},
    "workflows/<slug:slug>/runs/<int:number>/": {"GET": "viewer"},
    "regressions/<uuid:pk>/acknowledge/": {"POST": "operator"},
    "regressions/<uuid:pk>/resolve/": {"POST": "operator"},
    "souls/": {"GET": "viewer"},
    "souls/<slug:slug>/": {"GET": "viewer"},
    "runs/": {"GET": "viewer"},
    "runs/export.csv": {"GET": "viewer"},
    "runs/export.jsonl": {"GET": "viewer"},
    "runs/compare/": {"GET": "viewer"},
    "runs/<uuid:run_id>/": {"GET": "viewer"},
    "runs/<uuid:run_id>/live/": {"GET": "viewer"},
    "runs/<uuid:run_id>/nodes/<int:pk>/": {"GET": "viewer"},
    "runs/<uuid:run_id>/nodes/<int:pk>/output.txt": {"GET": "viewer"},
    "runs/<uuid:run_id>/workflow.yaml": {"GET": "viewer"},
    "runs/<uuid:run_id>/case.yaml": {"GET": "viewer"},
    "runs/<uuid:run_id>/cancel/": {"POST": "operator"},
    "runs/<uuid:run_id>/rerun/": {"POST": "operator"},
    "runs/<uuid:run_id>/compare/<uuid:other_id>/": {"GET": "viewer"},
    "assertions/": {"GET": "viewer", "POST": "viewer"},
    "assertions/blocks/": {"GET": "viewer"},
    "assertions/backtest/": {"POST": "viewer"},
    "evals/": {"GET": "viewer"},
    "evals/runs/<uuid:run_id>/": {"GET": "viewer"},
    "evals/runs/<uuid:run_id>/compare/<uuid:other_id>/": {"GET": "viewer"},
    "evals/<slug:slug>/": {"GET": "viewer"},
    "evals/<slug:slug>/start/": {"POST": "operator"},
    "evals/<slug:slug>/compare/": {"GET": "viewer"},
    "runs/<uuid:run_id>/nodes/<int:pk>/case/": {"GET": "editor", "POST": "editor"},
}

# Everything below these: refused to whoever is below the role; the rest is the business of their own tests.
PREFIXES = {
    "admin/": "editor",
}

# Websocket routes: all of them need `viewer`.
SOCKETS = ("ws/runs/<uuid:run_id>/", "ws/workflows/<slug:slug>/", "ws/dashboard/")
