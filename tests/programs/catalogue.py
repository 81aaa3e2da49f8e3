# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All programs that run_program.py knows."""

import guests
import programs
import servers

ALL = (*programs.ALL, *guests.ALL, *servers.ALL)


def find(name):
    for program in ALL:
        if program.name == name:
            return program
    raise KeyError(f"no program called {name}; there are: {', '.join(one.name for one in ALL)}")
