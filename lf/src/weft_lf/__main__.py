"""`python -m weft_lf` does the same as `weft lf`."""

import sys

from weft_lf.cli import main

sys.exit(main())
