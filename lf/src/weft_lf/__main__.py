"""Makes `python -m weft_lf` do the same as `weft lf`."""

import sys

try:  # the import takes some tenths of a second, and Ctrl-C in it must end without a traceback
    from weft_lf.cli import main
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main())
