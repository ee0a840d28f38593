"""The project's settings in a folder of their own: whatever the shell exports, tests see the defaults."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from runsight_site.environment import VARIABLES
from tests import services

for _variable in VARIABLES:
    os.environ.pop(_variable.name, None)

if "RUNSIGHT_TEST_HOME" not in os.environ:  # parallel workers inherit the first process's folder
    os.environ["RUNSIGHT_TEST_HOME"] = tempfile.mkdtemp(prefix="runsight-test-")
    atexit.register(shutil.rmtree, os.environ["RUNSIGHT_TEST_HOME"], ignore_errors=True)
TEST_HOME = Path(os.environ["RUNSIGHT_TEST_HOME"])
os.environ["RUNSIGHT_HOME"] = str(TEST_HOME / os.environ.get("PYTEST_XDIST_WORKER", "main"))

if os.environ.get("RUNSIGHT_TEST_DATABASE") == "postgres" and services.is_available("postgres"):
    _name = TEST_HOME.name.replace("-", "_").lower()
    os.environ["DATABASE_URL"] = services.url_of("postgres").rpartition("/")[0] + f"/{_name}"

from runsight_site.settings import *  # noqa: E402, F403 - after the environment above

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Tests start and stop their own executor (the `executor` fixture); importing the site must not.
RUNSIGHT_EXECUTOR = "test"
# Throttles count in the process's cache, which outlives a test; the test of throttling sets its own rate.
API_RATE = None
LOG_IN_RATE = None
