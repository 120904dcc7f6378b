"""``python -m gradcheck_plus``."""

import sys

from gradcheck_plus.cli import main

if __name__ == "__main__":
    sys.exit(main())
