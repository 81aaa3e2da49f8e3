# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests share in which a process becomes another user: only root can do that.

    import rights
    GIVEN = rights.GIVEN            # GIVEN.tool is what `--tool FILE` says
    class Mine(rights.OpenFolder): ...
    if __name__ == "__main__":
        rights.main("tool", needs="unshare")
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

GIVEN = argparse.Namespace()
NOBODY = 65534


class OpenFolder(unittest.TestCase):
    """With a folder on a disk that others may look into, until the end of the case."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"farheap-{type(self).__name__}-", dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)


def main(*names, needs):
    """Runs the caller's cases. Each name is an option that has to be given; `needs` is a command that they start."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    _, rest = parser.parse_known_args(namespace=GIVEN)
    if os.geteuid() != 0 or shutil.which(needs) is None:
        print(f"SKIPPED: only root can become another user, and with {needs}", file=sys.stderr)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
