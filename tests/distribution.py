# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sources of the distribution's packages, for tests that build them, and commands that must go well.

They come by `apt-get source`, with a list of sources, indices and a cache of the caller's own: nothing of the machine's is
changed.
"""

import os
import pathlib
import re
import shutil
import subprocess


class Skip(Exception):
    """It cannot be tested here, and why."""


class Failed(Exception):
    """What went wrong."""


def run(command, folder=None, patience=3000, user=None, **variables):
    """Output and errors in one. Raises Failed."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=patience, user=user)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}: not done after {patience} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


# ---- sources


def release():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.MULTILINE)
    return found.group(1) if found else ""


def in_new_form(text, code):
    """Entries of a .sources file that are the distribution's own, as sources of sources."""
    for entry in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", entry, re.MULTILINE))
        suites = [suite for suite in fields.get("Suites", "").split() if suite == code or suite.startswith(f"{code}-")]
        if not suites or fields.get("Enabled", "yes") == "no" or "main" not in fields.get("Components", "").split():
            continue
        key = f"[signed-by={fields['Signed-By']}] " if fields.get("Signed-By", "").startswith("/") else ""
        for place in fields.get("URIs", "").split():
            for suite in suites:
                yield f"deb-src {key}{place} {suite} main"


def in_old_form(text, code):
    """The same of a file of lines."""
    for line in text.splitlines():
        found = re.match(r"\s*deb(?:-src)?\s+(\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$", line)
        if found and "main" in found.group(4).split():
            if found.group(3) == code or found.group(3).startswith(f"{code}-"):
                key = re.search(r"signed-by=\S+?(?=[\s\]])", found.group(1) or "")
                yield f"deb-src {f'[{key.group(0)}] ' if key else ''}{found.group(2)} {found.group(3)} main"


def source_lines():
    code = release()
    lines = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.is_file() and path.suffix in (".list", ".sources"):
            read = in_new_form if path.suffix == ".sources" else in_old_form
            lines += read(path.read_text(encoding="utf-8"), code)
    return list(dict.fromkeys(lines))


def fetch(package, folder, *how):
    """Where the unpacked source is; `how` it is unpacked. Raises Skip where it cannot be had."""
    for tool, of in (("apt-get", "apt"), ("dpkg-source", "dpkg-dev")):
        if shutil.which(tool) is None:
            raise Skip(f"there is no {tool}; apt install {of}")
    unpacked = folder / "source" / package
    if not unpacked.exists():
        lines = source_lines()
        if not lines:
            raise Skip("apt's lists name no place of this distribution that sources could come from")
        apt = folder / "apt"
        for part in ("lists/partial", "cache/archives/partial", "files"):
            (apt / part).mkdir(parents=True, exist_ok=True)
        (apt / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        settings = [f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=/dev/null",
                    f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}/cache",
                    "Acquire::Languages=none", "APT::Sandbox::User=root", "Acquire::Retries=2"]
        options = [word for setting in settings for word in ("-o", setting)]
        try:
            run(["apt-get", *options, "-qq", "update"], patience=300)
            run(["apt-get", *options, "-qq", "source", "--download-only", package], apt / "files", patience=300)
        except Failed as error:
            raise Skip(f"apt-get does not get the source of {package}: {error}") from error
        description = max((apt / "files").glob(f"{package}_*.dsc"))
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        run(["dpkg-source", "--no-check", *how, "-x", description, unpacked])
    print(f"{package}: {run(['dpkg-parsechangelog', '-S', 'Version'], unpacked).strip()}", flush=True)
    return unpacked
