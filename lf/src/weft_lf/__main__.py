"""`python -m weft_lf` does the same as `weft lf`."""

import sys

try:  # it takes some tenths of a second, and there is nothing to say yet
    from weft_lf.cli import main
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main())
