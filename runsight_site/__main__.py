"""`runsight`: the command line, the same program as `manage.py`."""

import os
import sys

from evals_app import cli


def main() -> None:
    """Run one command; a wrong environment variable is a sentence, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "runsight_site.settings")
    if len(sys.argv) > 1 and sys.argv[1] in cli.COMMANDS:
        sys.exit(cli.run(sys.argv[1], sys.argv[2:]))  # without Django, which takes longer than the work
    from django.core.management import execute_from_command_line

    from runsight_site.environment import BadSetting

    try:
        execute_from_command_line(sys.argv)
    except BadSetting as error:
        sys.exit(f"runsight: wrong setting.\n{error}")


if __name__ == "__main__":
    main()
