"""The explorer's page: how long it takes to write, how large it is, how fast it opens, and how long a step takes.

    python tests/bench/explore.py [--rounds 5] [--picture labs/pictures/explorer.png]

`mini-tf explore` (T = 12, n = 64, L = 2, H = 4) is timed as a whole process, training included. The page is opened in
headless Chromium; a step is one press of →, until the page is laid out again, over all lines of the page.
Needs Chromium, and Playwright (pip install -e '.[test]'). --picture writes the README's picture.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

STEPS = """() => {
  showView("lines");
  return recording().lines.map((line) => {
    const start = performance.now(); goTo(line.number); document.body.offsetHeight; return performance.now() - start; });
}"""
STORY = """() => storySteps().map((_, i) => {
  const start = performance.now(); goToStory(i + 1); document.body.offsetHeight; return performance.now() - start; })"""
PICTURE = "() => goToStory(storySteps().findIndex((step) => step.title.startsWith('The residual sum')) + 1)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often all is measured (default: 5)")
    parser.add_argument("--picture", type=Path, help="write a picture of the page into this file")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        parser.error("Chromium is not here: apt-get install chromium")
    script = shutil.which("mini-tf", path=Path(sys.executable).parent)
    writing, opening, steps, story = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = Path(folder) / "explore.html"
        chromium = running.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(options.rounds):
            start = time.perf_counter()
            subprocess.run([script, "explore", "--out", path], check=True, stdout=subprocess.DEVNULL)
            writing.append(time.perf_counter() - start)
            page = chromium.new_page(viewport={"width": 1280, "height": 800})
            start = time.perf_counter()
            page.goto(f"{path.as_uri()}#quiet")
            page.wait_for_selector("#map svg")
            opening.append(time.perf_counter() - start)
            steps += page.evaluate(STEPS)
            story += page.evaluate(STORY)
            if options.picture:
                page.reload()
                page.evaluate(PICTURE)
                page.screenshot(path=options.picture)
            page.close()
        size = path.stat().st_size
    print(f"written in {statistics.median(writing):.1f} s, median of {options.rounds} ({max(writing):.1f} at most)")
    print(f"size {size / 1e6:.1f} MB")
    print(f"opens in {statistics.median(opening):.2f} s")
    steps.sort()
    print(f"a step of the story: {statistics.median(story):.0f} ms")
    print(f"a line: {statistics.median(steps):.0f} ms, 99 % within {steps[int(0.99 * len(steps))]:.0f} ms")


if __name__ == "__main__":
    main()
