# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ask_redis.py COMMANDS: sends a file of commands to a redis-server of its own, piece by piece, and prints a
digest of all its answers."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "tests", "programs"))
import redis_job  # pylint: disable=wrong-import-position,import-error

PIECE = 64 << 10


def connect(path, process):
    while process.poll() is None:
        try:
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            return client
        except OSError:
            client.close()
            time.sleep(0.01)
    sys.exit(f"redis-server ended with status {process.returncode}")


def send(client, path):
    with open(path, "rb") as commands:
        while piece := commands.read(PIECE):
            client.sendall(piece)
    client.sendall(redis_job.encode([b"PING"]))


def answers(client):
    total, end = hashlib.sha256(), b""
    while not end.endswith(b"+PONG\r\n"):
        piece = client.recv(PIECE)
        if not piece:
            sys.exit("redis-server has gone")
        total.update(piece)
        end = (end + piece)[-7:]
    return total.hexdigest()


def main():
    path = sys.argv[1]
    folder = tempfile.mkdtemp(prefix="farheap-")
    place = os.path.join(folder, "socket")
    process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", place, "--dir", folder, "--save", ""],
                               executable=redis_job.PROGRAM, stdout=subprocess.DEVNULL)
    try:
        client = connect(place, process)
        sender = threading.Thread(target=send, args=(client, path), daemon=True)
        sender.start()
        print(answers(client))
        sender.join()
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
