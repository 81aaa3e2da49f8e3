# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a subject of the benchmark is: one program that users run, with hot and cold data. One class for each, in a file
of the folder subjects; whoever adds one adds its class there, and it is found.

A subject needs 60 to 300 MiB and 1 to 4 s with no limit; its output is the same in every run.
"""

import dataclasses
import hashlib
import importlib.util
import inspect
import os
import random
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
SCRIPTS = os.path.join(HERE, "subjects", "scripts")
# Programs by another package manager than apt, built or fetched by ./dev.
TOOLS = os.path.join(REPOSITORY, "build", "tools")


@dataclasses.dataclass
class Job:
    command: list
    stdin: str = None
    env: dict = None
    cwd: str = None
    results: tuple = ()  # files that belong to the output, besides stdout
    timeout: float = None  # seconds; set by what runs it


def environment(**more):
    """The caller's, with all that may change a program's output fixed."""
    return {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "TZ": "UTC", **more}


def script(name):
    return os.path.join(SCRIPTS, name)


def made(folder, name, make):
    """The path of `name` in the folder, made by make(temporary path) if it is not there yet."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        temporary = f"{path}.{os.getpid()}"
        make(temporary)
        os.replace(temporary, path)
    return path


def missing_command(command, package):
    """None, or what to install."""
    return None if shutil.which(command) else f"{command} is not installed: apt install {package}"


def skewed_numbers(seed, count, below):
    """Most of them from a few: a tenth of the numbers takes about 46 % of all, half of them 79 %. The numbers that are
    often taken are spread over the whole range."""
    rng = random.Random(seed)
    order = list(range(below))
    rng.shuffle(order)
    return [order[int(below * rng.random() ** 3)] for _ in range(count)]


def data_folder(folder, subject):
    """Where the subject makes its input: another one whenever its file or a script changed."""
    total = hashlib.sha256()
    sources = [inspect.getfile(type(subject)), *sorted(script(name) for name in os.listdir(SCRIPTS))]
    for path in sources:
        with open(path, "rb") as source:
            total.update(source.read())
    return os.path.join(folder, f"{subject.name}-{total.hexdigest()[:8]}")


class Subject:
    name = ""
    tools = ()  # (command, apt package)
    does = ""  # for the page
    unrecorded = ""  # why its uses of memory cannot be recorded, if so
    reached = True  # False: farheap has no way into its memory (docs/limits.md), and says so

    def missing(self):
        """None, or what to install."""
        return next(filter(None, (missing_command(*tool) for tool in self.tools)), None)

    def prepare(self, folder):
        """Makes its input in `folder`, which it has for itself, unless it is there, and returns the job."""
        raise NotImplementedError


def digest(job, run):
    """What must be the same in every way of running. Raises ValueError where the run gave no result."""
    if run.status != 0:
        raise ValueError(f"exit status {run.status}: {run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
    total = hashlib.sha256(run.stdout)
    for path in job.results:
        with open(path, "rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    if not run.stdout and not job.results:
        raise ValueError("it printed nothing")
    return total.hexdigest()


def _classes_of(path):
    name = os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(f"subjects_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that a class knows its file
    spec.loader.exec_module(module)
    return [one for one in vars(module).values()
            if isinstance(one, type) and issubclass(one, Subject) and one.name and one.__module__ == module.__name__]


def all_subjects():
    """One of each class in the folder, in the order of the files and in them."""
    folder = os.path.join(HERE, "subjects")
    files = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [kind() for name in files for kind in _classes_of(os.path.join(folder, name))]
