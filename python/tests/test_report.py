"""
What runs leave for people: events read by TensorBoard, pages of `tercel report` parsed, and opened in a browser.

The program is the one in TERCEL_PROGRAM, or in bin beside the package of a build folder.
"""

import csv
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import tercel

PROGRAM = pathlib.Path(os.environ.get("TERCEL_PROGRAM", pathlib.Path(tercel.__file__).parents[2] / "bin" / "tercel"))
BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
               None)

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(folder, out, *words):
    run("train", folder / "data", "--out", folder / out, "--set", "solver.batchsize=64", "--set",
        "solver.display_seconds=1e-9", "--set", "solver.eval_interval=5", "--threads", "1", "--tensorboard", *words)


def records_of(run_folder):
    lines = (run_folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset, run `one` in two parts, and run `two` with other options and awkward names."""
    root = tmp_path_factory.mktemp("report")
    rows = [f"{int(r % 3 == 0)},{r % 7},<c{r % 5}&>,u{r % 11}" for r in range(600)]
    (root / "rows.csv").write_text("\n".join(["y,a,c<1>,user", *rows]) + "\n")
    run("convert", "csv", root / "rows.csv", root / "data", "--label", "y", "--dense", "a", "--categorical", "c<1>",
        "--categorical", "user", "--test-every", "4")
    train(root, "one", "--set", "solver.max_iter=10")
    train(root, "one", "--set", "solver.max_iter=16", "--resume", "auto")
    train(root, "two & <b>", "--set", "solver.max_iter=12", "--set", "solver.lr=0.02", "--set",
          "solver.slice_by=c<1>", "--set", "solver.metrics=auc,log_loss,gauc", "--set", "solver.group_by=user")
    run("report", root / "one", root / "two & <b>", "--out", root / "report.html")
    return root


def test_tensorboard_reads_the_events(folder):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="the package tensorboard is not installed")
    events = accumulator.EventAccumulator(str(folder / "one"))
    events.Reload()
    records = records_of(folder / "one")
    evaluations = [r for r in records if r["kind"] == "evaluation"]
    steps = sorted({r["step"] for r in evaluations})
    assert steps == [5, 10, 15, 16]
    prefix = next(iter(evaluations)).get("part", "evaluation")
    tags = events.Tags()["scalars"]
    for name in ("auc", "log_loss", "accuracy", "calibration"):
        assert f"{prefix}/{name}" in tags
    found = [(e.step, e.value) for e in events.Scalars(f"{prefix}/auc")]
    expected = [(r["step"], pytest.approx(r["auc"], rel=1e-6)) for r in evaluations if r.get("part", prefix) == prefix]
    assert found == expected, "each step once, although the run was resumed"
    losses = [(e.step, e.value) for e in events.Scalars("train/loss")]
    assert losses == [(r["step"], pytest.approx(r["loss"], rel=1e-6)) for r in records if r["kind"] == "train"]
    text = events.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert json.loads(text)["solver"]["batchsize"] == 64


def test_tensorboard_forgets_the_steps_that_a_resumed_run_repeats(folder):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="the package tensorboard is not installed")
    train(folder, "killed", "--set", "solver.max_iter=10", "--set", "solver.checkpoint_interval=5")
    shutil.rmtree(folder / "killed/checkpoints/step-000000000010")
    train(folder, "killed", "--set", "solver.max_iter=10", "--resume", "auto")
    events = accumulator.EventAccumulator(str(folder / "killed"))
    events.Reload()
    assert [e.step for e in events.Scalars("train/loss")] == list(range(1, 11))


def test_the_table_has_the_records(folder):
    with open(folder / "one/metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    records = records_of(folder / "one")
    assert len(rows) == len(records) > 16
    for row, record in zip(rows, records):
        assert row["kind"] == record["kind"] and int(row["step"]) == record["step"]
        assert row["part"] == record.get("part", "")
        for name in ("loss", "learning_rate", "auc", "calibration"):
            assert row[name] == "" if name not in record else float(row[name]) == record[name]


class Elements(html.parser.HTMLParser):
    """Elements by name, and whatever might load something."""

    def __init__(self):
        super().__init__()
        self.names = []
        self.open = []
        self.loads = []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.open.append(tag)
        self.loads += [(tag, name) for name, _ in attributes if name in ("src", "href", "srcset", "data", "onload")]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    tree = ElementTree.fromstring(page)
    space = {"h": "http://www.w3.org/1999/xhtml"}
    assert len(tree.findall(".//h:svg", space)) >= 6
    texts = ["".join(cell.itertext()) for cell in tree.findall(".//h:tr/h:th", space)]
    assert "two & <b>" in texts and "<c0&>" in texts
    differing = tree.findall(".//h:tr[@class='differs']/h:th", space)
    assert {"solver.lr", "solver.max_iter", "solver.slice_by"} <= {cell.text for cell in differing}
    for line in tree.findall(".//h:polyline", space):
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert points and all(0 <= x <= 560 and 0 <= y <= 320 for x, y in points)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    parser = Elements()
    parser.feed(page)
    assert parser.open == [] and parser.loads == [] and "script" not in parser.names
    assert "url(" not in page and "@import" not in page


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_shows_the_page(folder, tmp_path):
    arguments = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000"]
    url = (folder / "report.html").as_uri()
    # What the browser made of the page: it moves or closes elements where the page is wrong.
    dumped = subprocess.run([*arguments, "--dump-dom", url], capture_output=True, text=True, timeout=120)
    assert dumped.returncode == 0, dumped.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    for tag in ("svg", "polyline", "circle", "tr", "td", "figure"):
        assert len(re.findall(f"<{tag}[ >]", dumped.stdout)) == len(re.findall(f"<{tag}[ >]", page)), tag
    assert "&lt;c0&amp;&gt;" in dumped.stdout
    picture = tmp_path / "page.png"
    subprocess.run([*arguments, "--window-size=1200,3000", f"--screenshot={picture}", url], capture_output=True,
                   timeout=120, check=True)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
