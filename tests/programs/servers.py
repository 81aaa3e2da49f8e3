# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Long-running servers, filled and asked under a budget by serve.py, which prints what they answered."""

import os
import shutil
import subprocess
import sys

import programs

SERVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve.py")
POSTGRES = "/usr/lib/postgresql/15/bin"


class Server(programs.Program):
    def __init__(self, kind, tools):
        self.name = f"{kind}_server"
        self.tools = tools
        self._kind = kind

    def prepare(self, folder, size):
        return programs.Job([sys.executable, SERVE, self._kind, size], env=programs.environment(TMPDIR="/tmp"))


class PostgresServer(Server):
    """It refuses to be root, so it runs in a user namespace as somebody else; its memory is root's all the same."""

    shared_bytes = 4 << 20  # postgres -C shared_memory_size

    def missing(self):
        if not os.access(f"{POSTGRES}/postgres", os.X_OK):
            return f"{POSTGRES}/postgres is not there: apt install postgresql-15"
        if shutil.which("psql") is None:
            return "psql is not installed: apt install postgresql-client-15"
        probe = ["unshare", "--user", "--map-user=postgres", "true"]
        if subprocess.run(probe, check=False, capture_output=True).returncode != 0:
            return "this machine makes no user namespaces, or has no user postgres"
        if os.geteuid() == 0 and not os.path.exists("/dev/userfaultfd"):
            return "/dev/userfaultfd is not there (Linux 6.1), and in a user namespace there is no other way to it"
        return None


ALL = (Server("memcached", (("memcached", "memcached"),)), PostgresServer("postgres", ()))
