"""`.env.example` and `docs/settings.md`, from the one list of variables: `python -m runsight_site.environment.docs`."""

from runsight_site.environment import PROJECT_DIR, VARIABLES


def env_example() -> str:
    """Every variable commented out, with its meaning above it."""
    head = (
        "# Copy what you change into the environment. Every variable has a default that works on a laptop.\n"
    )
    entries = [f"\n# {v.help}\n# {v.name}={v.example or v.default}\n" for v in VARIABLES]
    return head + "".join(entries).replace("`", "")


def settings_page() -> str:
    """The reference as one table."""
    rows = [
        f"| `{v.name}` | {f'`{v.default}`' if v.default else '–'} | {v.help} | {v.kind.wants.replace('|', '/')} |"
        for v in VARIABLES
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "Runsight is set up by environment variables alone, and runs with none of them. Each is checked at start; a",
            "invalid value ends the start with a sentence that names the variable and what it should have been.",
            "",
            "| variable | default | meaning | value |",
            "|---|---|---|---|",
            *rows,
            "",
            "`runsight check` warns of combinations that start but are unlikely to be meant.",
            "",
        ]
    )


def pages() -> dict[str, str]:
    """The text of each generated file, by its path in the repository."""
    return {".env.example": env_example(), "docs/settings.md": settings_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        (PROJECT_DIR / path).write_text(text)
