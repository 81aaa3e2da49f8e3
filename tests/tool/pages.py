# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of the pages of `farheap report --html` have in common: a browser, and how a page is looked at."""

import argparse
import pathlib
import shutil
import sys
import tempfile
import unittest

import real_runs
from real_runs import skipped

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = By = None

MOST_NODES = 40_000  # a browser takes well under a second for as many
given = argparse.Namespace()  # what main() was given


def size_text(value):
    """As base::format_size()."""
    units, unit = ["B", "KiB", "MiB", "GiB", "TiB"], 0
    while value >= 1024 and unit < 4:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {units[unit]}"


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--window-size=1280,900"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page(unittest.TestCase):
    """One browser for all cases of a class; `make(folder)` answers the page's file."""

    @classmethod
    def setUpClass(cls):
        missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
        if webdriver is None or missing:
            skipped(cls.__name__, f"needs {', '.join(missing) or 'selenium'} (apt-get install chromium chromium-driver "
                                  "python3-selenium)")
        folder = tempfile.TemporaryDirectory(prefix="farheap-page-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.page = cls.make(cls.folder)
        cls.driver = browser()
        cls.addClassCleanup(cls.driver.quit)

    def setUp(self):
        self.scheme("light")
        self.driver.get("about:blank")
        self.driver.get(f"file://{self.page}")

    def tearDown(self):
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        self.assertEqual(errors, [], "the browser's console")

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def script(self, text, *values):
        return self.driver.execute_script(text, *values)

    def all(self, selector, within=None):
        return (within or self.driver).find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def tabs(self):
        return [tab.get_attribute("id").removeprefix("tab-") for tab in self.all("[role=tab]")]

    def open(self, view):
        self.one(f"#tab-{view}").click()
        panel = self.one(f"#view-{view}")
        self.assertTrue(panel.is_displayed())
        if view in ("stacks", "contexts"):  # frames grow in the next moments
            wide = f"return document.querySelector('#view-{view} g.frame rect').getBoundingClientRect().width > 900"
            WebDriverWait(self.driver, 30).until(lambda driver: driver.execute_script(wide))
        return panel

    def rows(self, view, table=0):
        """[{heading: (value, text)}] of a table; headings that come again have a number behind them."""
        return self.script("""
            const table = document.querySelectorAll(`#view-${arguments[0]} table`)[arguments[1]];
            const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
            const before = (name, at) => names.slice(0, at).filter((one) => one.replace(/ \\d+$/, "") === name).length;
            names.forEach((name, at) => { if (before(name, at) > 0) names[at] = `${name} ${before(name, at) + 1}`; });
            return [...table.tBodies[0].rows].map((row) => Object.fromEntries(
              [...row.cells].map((cell, at) => [names[at], [cell.dataset.value, cell.textContent]])));""", view, table)

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def nodes(self):
        return self.script("return document.getElementsByTagName('*').length")

    def shot(self, name):
        picture = self.driver.get_screenshot_as_png()
        if given.screenshots:
            (pathlib.Path(given.screenshots) / f"{name}.png").write_bytes(picture)
        return picture

    def assert_accessible(self, where):
        if not pathlib.Path(given.axe).is_file():
            skipped(self.id(), f"axe-core is not in {given.axe} (./dev test fetches it)")
        self.script(pathlib.Path(given.axe).read_text(encoding="utf-8"))
        found = self.driver.execute_async_script("axe.run().then(arguments[0], (error) => arguments[0](String(error)));")
        self.assertIsInstance(found, dict, found)
        self.assertGreater(len(found["passes"]), 10, "axe looked at the page")
        said = [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}: {one['nodes'][0]['failureSummary']}"
                for one in found["violations"]]
        self.assertEqual(said, [], where)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--axe", required=True, help="axe.min.js")
    parser.add_argument("--screenshots", default="", help="a folder for pictures of the views")
    parser.add_argument("--no-names", action="store_true", help="built without libdw")
    parser.add_argument("classes", nargs="*")
    parser.parse_args(namespace=given)
    real_runs.use(given.tool)
    unittest.main(module="__main__", argv=[sys.argv[0], *given.classes], verbosity=2)
