#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of a program that counted its contexts (farcc -ffar=record), in Chromium."""

import json
import os
import subprocess

from pages import MOST_NODES, Page, given, main, size_text
from real_runs import tool

try:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:  # then every case is skipped, with a loud line
    pass


def duration_text(seconds):
    return f"{seconds * 1000:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


class Counted(Page):
    """Of a program that counted its contexts (farcc -ffar=record)."""

    MOST_ROWS = 2000

    @classmethod
    def make(cls, folder):
        profile = str(folder / "counted.profile")
        subprocess.run([given.maker, "counted", profile], check=True, timeout=120)
        done = tool("report", profile, "--html", str(folder / "page.html"))
        assert done.returncode == 0, done.stderr
        cls.few, cls.many = json.loads(tool("report", profile, "--json").stdout)["contexts"]
        return folder / "page.html"

    def test_two_profiles_that_were_counted_could_not_be_compared(self):
        """They have no trace: the comparison ended with its being no trace, and status 2."""
        profile = str(self.folder / "counted.profile")
        other = self.folder / "run.json"
        other.write_text('{"seconds": 1.5, "faults": 7}', encoding="utf-8")  # as --stats=json prints
        same = tool("report", "--compare", profile, profile, "--json")
        self.assertEqual(same.returncode, 0, same.stderr)
        figures = {one["name"]: one for one in json.loads(same.stdout)["figures"]}
        self.assertEqual(sorted(figures), ["reads", "seconds", "writes"])
        for kind in ("reads", "writes"):
            counted = sum(one[kind] for process in (self.few, self.many) for one in process["tree"])
            self.assertGreater(counted, 0)
            self.assertEqual((figures[kind]["before"], figures[kind]["after"]), (counted, counted))
        for pair in ((profile, other), (other, profile)):
            mixed = tool("report", "--compare", *map(str, pair))
            self.assertEqual(mixed.returncode, 2, mixed.stdout)
            self.assertIn("counted by the program itself", mixed.stderr)

    @staticmethod
    def name(context):
        source = os.path.basename(context["source"])
        where = f" ({source}:{context['line']})" if source and context["line"] else ""
        return ("loop of " if context["kind"] == "loop" else "") + context["function"] + where

    @staticmethod
    def whole(process, key):
        """Of each context with all below it."""
        sums = [context[key] for context in process["tree"]]
        for context in reversed(process["tree"][1:]):
            sums[context["parent"]] += sums[context["id"]]
        return sums

    def second(self):
        """The other process, which is opened first."""
        panel = self.open("contexts")
        self.all("summary", panel)[-1].click()
        WebDriverWait(self.driver, 30).until(lambda _: len(self.all("#view-contexts table")) == 4)
        return panel

    def test_it_has_what_was_counted(self):
        self.assertEqual(self.tabs(), ["contexts"])
        self.assertIn("all were counted", self.one("header").text)
        self.open("contexts")
        self.shot("contexts")
        self.assertLess(self.nodes(), MOST_NODES)
        self.second()
        self.assertEqual(len(self.all("g.frame")) > len(self.few["tree"]), True, "two graphs")
        self.assertLess(self.nodes(), MOST_NODES)
        ids = self.script("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
        self.assertEqual(len(ids), len(set(ids)), "each id once")

    def test_contexts_are_those_of_the_json(self):
        self.open("contexts")
        rows = self.rows("contexts")
        tree = self.few["tree"]
        whole = self.whole(self.few, "own_seconds")
        wanted = sorted(tree[1:], key=lambda one: -whole[one["id"]])
        self.assertEqual([row["With all below"][1] for row in rows],
                         [duration_text(whole[one["id"]]) for one in wanted])
        by_name = {self.name(one): one for one in wanted}
        self.assertEqual({row["Context"][0] for row in rows}, set(by_name))
        for row in rows:
            one = by_name[row["Context"][0]]
            self.assertAlmostEqual(float(row["With all below"][0]), whole[one["id"]], places=9)
            for heading, key in (("Own", "own_seconds"), ("Entries", "entries"), ("Reads", "reads"), ("Writes", "writes")):
                self.assertEqual(float(row[heading][0]), one[key], heading)
        inner = next(row for row in rows if row["Context"][0] == "loop of step (app.c:13)")
        self.assertIn("called from", inner["Context"][1])

    def test_what_they_access_is_that_of_the_json(self):
        self.open("contexts")
        rows = self.rows("contexts", 1)
        tree = self.few["tree"]
        wanted = []
        for site in self.few["sites"]:
            of_site = [one for one in self.few["accesses"] if one["site"] == site["id"]]
            most = max(of_site, key=lambda one: one["reads"] + one["writes"], default=None)
            wanted.append(dict(site, reads=sum(one["reads"] for one in of_site),
                               writes=sum(one["writes"] for one in of_site), into=self.name(tree[site["context"]]),
                               most_by=self.name(tree[most["context"]]) if most else ""))
        wanted.sort(key=lambda one: -(one["reads"] + one["writes"]))
        self.assertEqual(len(rows), 3)
        for row, one in zip(rows, wanted):
            self.assertEqual(float(row["Accesses"][0]), one["reads"] + one["writes"])
            for heading, key, text in (("Reads", "reads", "{:,}".format), ("Writes", "writes", "{:,}".format),
                                       ("Peak", "peak_bytes", size_text), ("At the end", "live_bytes", size_text),
                                       ("Allocated", "allocated_bytes", size_text), ("Objects", "objects", "{:,}".format)):
                self.assertEqual(row[heading], [str(one[key]), text(one[key])], heading)
            for heading, key in (("Allocated at", "site"), ("In", "into"), ("Most accesses by", "most_by")):
                self.assertEqual(row[heading][0], one[key], heading)

    def test_frames_are_as_wide_as_the_json_says(self):
        panel = self.open("contexts")
        for number, (key, text) in enumerate((("own_seconds", duration_text), ("reads", "{:,}".format),
                                              ("writes", "{:,}".format))):
            self.all("input[type=radio]", panel)[number].click()
            whole = self.whole(self.few, key)
            self.assertEqual(self.one(".frame-said").text, f"app (process 11): {text(whole[0])}, 100 % of all")
            widths = dict(self.script("""return [...document.querySelectorAll('#view-contexts g.frame')].map((frame) =>
                [frame.getAttribute('name'), frame.querySelector('rect').getBoundingClientRect().width]);"""))
            for context in self.few["tree"][1:]:
                wanted = widths["app (process 11)"] * whole[context["id"]] / whole[0]
                if wanted > 2:
                    self.assertAlmostEqual(widths[self.name(context)], wanted, delta=1.5, msg=self.name(context))

    def test_what_is_left_out_is_said(self):
        self.second()
        tree, whole = self.many["tree"], self.whole(self.many, "own_seconds")
        self.assertGreater(len(tree), self.MOST_ROWS + 1)
        text = self.one("#view-contexts").text
        self.assertIn(f"{len(tree) - 1 - self.MOST_ROWS:,} smaller contexts are not in this table", text)
        self.assertIn(f"{len(self.many['sites']) - self.MOST_ROWS:,} sites that are accessed less", text)
        left_out = self.script("return JSON.parse(document.getElementById('data').textContent).contexts[1]")
        shown = sum(row[2] for row in left_out["contexts"])
        self.assertAlmostEqual(shown + left_out["contexts_left_out"]["own_seconds"] + tree[0]["own_seconds"], whole[0],
                               places=6)
        self.assertEqual(sum(row[4] for row in left_out["contexts"]) + left_out["contexts_left_out"]["reads"],
                         sum(one["reads"] for one in tree))
        self.assertEqual(sum(row["writes"] for row in left_out["sites"]) + left_out["sites_left_out"]["writes"],
                         sum(one["writes"] for one in self.many["accesses"]))

    def test_names_are_text(self):
        self.second()
        self.assertIsNone(self.script("return window.broken ?? null"))
        self.assertEqual(self.all("main b, main script"), [])
        self.assertIn("</script><script>window.broken = 1</script>",
                      [row["Context"][0] for row in self.rows("contexts")])

    def test_keys_walk_its_graph(self):
        self.open("contexts")
        self.one("#view-contexts .flame").send_keys(Keys.ARROW_DOWN)
        self.assertTrue(self.one(".frame-said").text.startswith("main (app.c:3):"), self.one(".frame-said").text)

    def test_it_is_accessible(self):
        for scheme in ("light", "dark"):
            self.scheme(scheme)
            self.second()
            self.assert_accessible(f"contexts, {scheme}")
            self.driver.get("about:blank")
            self.driver.get(f"file://{self.page}")

if __name__ == "__main__":
    main()
