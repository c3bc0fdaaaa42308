"""What all tests share: a seeded generator, Lab 6's corpus, and skipping GPU tests where there is no GPU."""

import io
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from mini_tf import cli
from mini_tf.backend import gpu_count
from mini_tf.cores import blas_threads
from mini_tf.errors import UserError
from mini_tf.models import Translator
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import Adam, PairBatches, Schedule, Training
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

if "PYTEST_XDIST_WORKER" in os.environ:                          # one process for each core: products take one core each,
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")           # also in the programs that tests start
    threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), "blas")

sys.path.append(str(Path(__file__).parent.parent / "labs"))      # what labs share, and tests of it import: _expect, …

# No test depends on how busy the machine is.
settings.register_profile("mini_tf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mini_tf")

# A shell that starts the tests in the background (`pytest &` in a script) has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="the exhaustive tests, too: all labs, all combinations of options, …")
    parser.addoption(
        "--seeds", type=int, default=2, help="at how many seeds right ops are checked in test_false_alarms.py; default: 2"
    )


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def two_threads():
    """BLAS has two threads, though tests run side by side"""
    with threadpool_limits(2, "blas"):
        if blas_threads() != 2:
            pytest.skip("BLAS has no second thread here")
        yield


def examples(number):
    """How many examples a test with random input tries: MINI_TF_EXAMPLES times as many, if that is set."""
    return number * int(os.environ.get("MINI_TF_EXAMPLES", "1"))


@pytest.fixture
def command(monkeypatch, capsys):
    """command("train", "--steps", "3", stdin="") → (exit code, stdout, stderr) of mini-tf"""

    def run(*arguments, stdin=""):
        monkeypatch.setattr(sys, "argv", ["mini-tf", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return end.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("train", "--steps", "3") → (exit code, stdout, stderr), in an empty folder, with a tiny preset."""
    quick = PRESETS["quick"]
    tiny = replace(
        quick, n=8, model=quick.model | {"T": 8, "m": 4}, steps=8, every=4, batch=8, validation_words=40, sample_words=30
    )
    monkeypatch.setitem(PRESETS, "quick", tiny)
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture
def corpus(tmp_path):
    """600 words of nonsense with some order in it."""
    rng = np.random.default_rng(0)
    words = "the fat cat ate a rat and then my lord said good morrow to his dear father , . ! \n".split(" ")
    path = tmp_path / "corpus.txt"
    path.write_text(" ".join(words[i] for i in np.abs(rng.normal(0, 7, 900)).astype(int) % len(words)))
    return path


@pytest.fixture(scope="session")
def lab_text():
    """The text of Lab 6's corpus; the test is skipped if it is not here and cannot be fetched."""
    try:
        return shakespeare()
    except UserError as error:
        if "has to be fetched" not in str(error):
            raise                                        # a wrong text is a failure
        return pytest.skip(str(error))


@pytest.fixture(scope="session")
def lab_corpus(lab_text):
    """(tokens, vocabulary, ids) of Lab 6's corpus."""
    tokens = tokenize(lab_text)
    vocabulary = Vocabulary(tokens)
    return tokens, vocabulary, vocabulary.encode(tokens)


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window; without one, the test is skipped"""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("needs Chromium, which is not here: apt-get install chromium")
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = running.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reverser():
    """A Translator that has begun to learn to write sentences backwards: its outputs have all lengths. Read only."""
    rng = np.random.default_rng(0)
    sources = [rng.integers(3, 9, rng.integers(1, 8)) for _ in range(300)]
    model = Translator(9, 9, n=16, T=9, L=1, H=2, m=8, f=32, tied="none", dropout=0.0, seed=1, dtype="float64")
    batches = PairBatches(sources, [ids[::-1] for ids in sources], 300)
    training = Training(model, batches, Adam(1e-2), Schedule(20, 300), rng=rng)
    for _ in range(150):
        training.one_step()
    return model


LEFT_OUT = pytest.StashKey[int]()


def leave_out_the_exhaustive(config, items):
    """Without --all, the default: what is marked exhaustive is not run, and the last lines say so."""
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)
    if hasattr(config, "workeroutput"):                                  # one of several processes of pytest-xdist,
        config.workeroutput["left_out"] = len(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):                                           # and the process that started it
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config):
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} exhaustive tests were left out: pytest --all runs them, too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("all"):
        leave_out_the_exhaustive(config, items)
    items.sort(key=lambda item: "lab" not in item.keywords)              # the longest first: no core waits at the end
    gpus, why_not = gpu_count()
    if gpus:
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {why_not}"))
