#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drives a redis-server of its own and prints what it answered, the same in every run.

  redis_job.py KEYS

Fills it, has it save in the background while writing goes on, asks for all keys, and loads what was saved into a
second server: that must hold what the first held when it forked. Servers listen on a socket in a folder of their own.
"""

import hashlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

# Debian's redis-server is a link to this program of redis-tools, which looks at the name it is called by. So no
# service has to be installed.
PROGRAM = "/usr/bin/redis-check-rdb"
AT_ONCE = 500  # commands in a pipeline


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
    return b"".join(parts)


class Connection:
    """What of the protocol is needed: commands in pipelines, answers as Python values."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._answers = self._socket.makefile("rb")

    def _answer(self):
        line = self._answers.readline()
        if not line:
            raise ConnectionError("the server has gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self._answers.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def pipeline(self, commands):
        self._socket.sendall(b"".join(encode(command) for command in commands))
        return [self._answer() for _ in commands]

    def ask(self, *words):
        return self.pipeline([words])[0]

    def close(self):
        self._answers.close()
        self._socket.close()


class Server:
    """A redis-server on `folder`; loads the dump.rdb that lies there."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "socket")
        self._process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self._path, "--dir", folder, "--save", "", "--hz", "100",
             "--enable-debug-command", "yes", "--daemonize", "no"], executable=PROGRAM, stdout=subprocess.DEVNULL)
        self.connection = self._connected()

    def _connected(self):
        """Connects as soon as the server listens and has loaded; run_program.py ends a job that hangs."""
        while True:
            try:
                connection = Connection(self._path)
                connection.ask("PING")
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                pass
            except RuntimeError as error:
                if not str(error).startswith("LOADING"):
                    raise
                connection.close()
            if self._process.poll() is not None:
                raise SystemExit(f"the server ended with {self._process.returncode}")
            time.sleep(0.05)

    def information(self, section, name):
        for line in self.connection.ask("INFO", section).decode().splitlines():
            if line.startswith(name + ":"):
                return line.partition(":")[2]
        raise KeyError(name)

    def digest_of_all(self, keys):
        """Over the values themselves, and the server's own over its tables."""
        total = hashlib.sha256()
        for first in range(0, keys, AT_ONCE):
            for value in self.connection.ask("MGET", *(f"key:{key}" for key in range(first, min(first + AT_ONCE, keys)))):
                total.update(value or b"-")
        return f"{total.hexdigest()} {self.connection.ask('DEBUG', 'DIGEST').decode()}"

    def stop(self):
        try:
            self.connection.ask("SHUTDOWN", "NOSAVE")
        except ConnectionError:
            pass
        self.connection.close()
        return self._process.wait()


def set_commands(rng, keys):
    """As random bytes as can be: nothing of it can be kept small."""
    return [("SET", f"key:{key}", rng.randbytes(rng.randrange(200, 1800))) for key in keys]


def write(connection, rng, keys):
    for first in range(0, len(keys), AT_ONCE):
        connection.pipeline(set_commands(rng, keys[first:first + AT_ONCE]))


def save_while_writing(server, rng, keys):
    """The fork comes with BGSAVE and before the first of these writes. Some of them happen before it has ended, however
    fast that is: they are sent in one piece with it."""
    some = rng.sample(range(keys), keys // 3)
    server.connection.pipeline([("BGSAVE",), *set_commands(rng, some[:AT_ONCE])])
    write(server.connection, rng, some[AT_ONCE:])
    while server.information("persistence", "rdb_bgsave_in_progress") != "0":
        write(server.connection, random.Random(7), some[:AT_ONCE])
        time.sleep(0.05)
    write(server.connection, random.Random(7), some[:AT_ONCE])  # so that it was written at least once
    print("saved:", server.information("persistence", "rdb_last_bgsave_status"))


def main():
    keys = int(sys.argv[1])
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = Server(folder)
        write(server.connection, rng, range(keys))
        server.connection.pipeline([("RPUSH", f"list:{n % 50}", f"{n}") for n in range(keys // 10)])
        server.connection.pipeline([("HSET", f"hash:{n % 70}", f"field {n}", f"{n * n}") for n in range(keys // 10)])
        before = server.digest_of_all(keys)
        save_while_writing(server, rng, keys)
        print("before:", before)
        print("after: ", server.digest_of_all(keys))
        print("ended with", server.stop())
        server = Server(folder)
        loaded = server.digest_of_all(keys)
        print("loaded:", loaded)
        print("ended with", server.stop())
        return 0 if loaded == before else 1


if __name__ == "__main__":
    sys.exit(main())
