"""`python -m precedents` is the command `precedents`."""

import sys

from precedents.cli._main import main

sys.exit(main())
