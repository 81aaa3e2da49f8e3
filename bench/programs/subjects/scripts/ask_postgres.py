# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ask_postgres.py DATA QUERY: starts a server on the folder DATA, and prints what it answers."""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "tests", "programs"))
import serve  # pylint: disable=wrong-import-position,import-error


def main():
    data, query = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="farheap-")
    os.chmod(folder, 0o755)
    command = serve.as_postgres(f"{serve.POSTGRES}/postgres", "-D", data, "-k", folder)
    for name, value in serve.SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    try:
        with serve.Running(command, folder, lambda: serve.ask_postgres(folder, "SELECT 1").returncode == 0):
            answer = serve.ask_postgres(folder, query)
            if answer.returncode != 0:
                sys.exit(f"no answer to: {query}")
            sys.stdout.buffer.write(answer.stdout)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
