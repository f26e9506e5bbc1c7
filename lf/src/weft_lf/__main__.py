"""`python -m weft_lf` is `weft lf`."""

import sys

from weft_lf.cli import main

sys.exit(main())
