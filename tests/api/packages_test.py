#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph of Debian's packages in a heap, against the same graph computed here, in memory.

  packages_test.py PACKAGES TOOL

Of the machine's list some thousand packages; with FARHEAP_ALL_PACKAGES=1 all.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "demo"))
import packages as lists  # pylint: disable=wrong-import-position

PACKAGES, TOOL = sys.argv[1:3]
ROUNDS = 5
FIELDS = re.compile(r"^(Package|Version|Provides|Depends|Pre-Depends): (.*)$", re.MULTILINE)
SOME = re.compile(r"Package: (a|b|gn|perl|python3|lib[a-g])")
NAME = re.compile(r"[ \t]*([^ \t:(\[]*)")


def fields_of(record):
    fields = collections.defaultdict(list)
    for found in FIELDS.finditer(record):
        fields[found.group(1)].append(found.group(2))
    return fields


def names_in(text, separator):
    found = (NAME.match(one).group(1) for one in text.split(separator))
    return [name for name in found if name]


class Graph:
    """What the example builds, in Python."""

    def __init__(self, records):
        needs, self.version, provides = {}, {}, {}
        for record in records:
            fields = fields_of(record)
            name = fields["Package"][-1]
            self.version[name] = (fields["Version"] or [""])[-1]
            provides[name] = names_in((fields["Provides"] or [""])[-1], ",")
            needs[name] = [names_in(choice, "|") for field in ("Pre-Depends", "Depends")
                           for value in fields[field] for choice in value.split(",")]
        provider = {}
        for name in sorted(provides, key=str.encode):
            for provided in provides[name]:
                provider.setdefault(provided, name)
        self.depends = {name: set() for name in needs}
        self.dependents = {name: set() for name in needs}
        for name, choices in needs.items():
            for choice in choices:
                there = (one if one in needs else provider.get(one) for one in choice)
                other = next(filter(None, there), None)
                if other and other != name:
                    self.depends[name].add(other)
                    self.dependents[other].add(name)

    def reach(self, first, edges):
        distance = {first: 0}
        waiting = collections.deque([first])
        while waiting:
            at = waiting.popleft()
            for other in edges[at]:
                if other not in distance:
                    distance[other] = distance[at] + 1
                    waiting.append(other)
        return distance

    def rank(self, rounds):
        count = len(self.depends)
        score = dict.fromkeys(self.depends, 1 / count)
        for _ in range(rounds):
            ends = sum(score[name] for name, others in self.depends.items() if not others)
            following = dict.fromkeys(self.depends, (0.15 + 0.85 * ends) / count)
            for name, others in self.depends.items():
                for other in others:
                    following[other] += 0.85 * score[name] / len(others)
            score = following
        return score


def updated(records):
    """A later list: some packages have gone, some have another version, and some are new."""
    for number, record in enumerate(records):
        if number % 50 == 7:
            continue
        if number % 40 == 3:
            record = re.sub(r"^Version: (\S+)", r"Version: \1+later", record, count=1, flags=re.MULTILINE)
        yield record
        if number % 300 == 5:
            name = fields_of(record)["Package"][0]
            yield f"Package: zz-new-{number}\nVersion: 1\nDepends: {name}, nothing-of-that-name | libc6 (>= 2)"


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        whole = os.environ.get("FARHEAP_ALL_PACKAGES") == "1"
        cls.records = [record for record in lists.all_records() if whole or SOME.match(record)]
        cls.graph = Graph(cls.records)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.uri = f"file:{cls.folder.name}/debian"
        cls.built = cls.run_packages("build", text="\n\n".join(cls.records) + "\n\n")

    @classmethod
    def run_packages(cls, *words, text=None, uri=None):
        done = subprocess.run([PACKAGES, uri or cls.uri, *words], input=text, capture_output=True, text=True, timeout=120,
                              check=False)
        if (done.returncode, done.stderr) != (0, ""):
            raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
        return done.stdout.splitlines()

    def compare(self, graph, uri):
        """Every question is a process of its own: the heap is opened anew."""
        busiest = sorted(graph.depends, key=lambda name: (-len(graph.dependents[name]), name))
        for name in (busiest[0], busiest[len(busiest) // 100], busiest[len(busiest) // 3]):
            reached = graph.reach(name, graph.dependents)
            self.assertEqual(self.run_packages("dependents", name, uri=uri),
                             sorted(set(reached) - {name}, key=str.encode))
        # The one that is deepest above the busiest, and back, where there is no way.
        reached = graph.reach(busiest[0], graph.dependents)
        deepest = max(reached, key=lambda name: (reached[name], name))
        path = self.run_packages("path", deepest, busiest[0], uri=uri)
        self.assertEqual((path[0], path[-1], len(path)), (deepest, busiest[0], reached[deepest] + 1))
        for one, other in zip(path, path[1:]):
            self.assertIn(other, graph.depends[one])
        if busiest[0] not in graph.reach(deepest, graph.dependents):
            self.assertEqual(self.run_packages("path", busiest[0], deepest, uri=uri), [])
        score = graph.rank(ROUNDS)
        ranked = [line.split() for line in self.run_packages("rank", str(len(score)), str(ROUNDS), uri=uri)]
        self.assertEqual(sorted(name for _, name in ranked), sorted(score))
        for value, name in ranked:
            self.assertAlmostEqual(float(value), score[name], delta=1e-11, msg=name)

    def test_what_is_asked_before_and_after_an_update(self):
        self.assertEqual(self.built, [f"{len(self.graph.depends)} packages"])
        self.compare(self.graph, self.uri)

        later_records = list(updated(self.records))
        later = Graph(later_records)
        self.assertEqual(self.run_packages("update", text="\n\n".join(later_records) + "\n\n"),
                         [f"{len(later.depends)} packages"])
        self.compare(later, self.uri)
        self.compare(self.graph, f"{self.uri}@before")

        expected = {}
        for name in set(self.graph.version) | set(later.version):
            before, now = self.graph.version.get(name), later.version.get(name)
            if before is None:
                expected[name] = f"+ {name} {now}"
            elif now is None:
                expected[name] = f"- {name} {before}"
            elif before != now:
                expected[name] = f"~ {name} {before} -> {now}"
        self.assertEqual({line[0] for line in expected.values()}, set("+-~"))
        self.assertEqual(self.run_packages("changes"), [expected[name] for name in sorted(expected, key=str.encode)])
        done = subprocess.run([TOOL, "heap", "check", self.uri], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
