#!/usr/bin/env python
"""The same program as the `runsight` console script."""

from runsight_site.__main__ import main

if __name__ == "__main__":
    main()
