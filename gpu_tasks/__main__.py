"""``python -m gpu_tasks PROGRAM``."""

import sys

from gpu_tasks.programs.cli import main

if __name__ == "__main__":
    sys.exit(main())
