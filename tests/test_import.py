"""`import mini_tf` costs next to nothing."""

import subprocess
import sys
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path

import mini_tf
from mini_tf.handout import lab_files

import pytest


def _python(code, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return done.stdout.strip()


def test_a_plain_import_loads_nothing_heavy():
    heavy = _python(
        "import sys, mini_tf, mini_tf.ops, mini_tf.models, mini_tf.text;"
        "print([m for m in ('cupy', 'numba', 'matplotlib', 'typer', 'rich') if m in sys.modules])"
    )
    assert heavy == "[]"
    assert _python("import sys, mini_tf.data; print([m for m in ('numpy', 'scipy') if m in sys.modules])") == "[]"


def test_submodules_load_when_asked_for():
    assert _python("import mini_tf; print(mini_tf.ops.softmax.__name__)") == "softmax"
    with pytest.raises(AttributeError, match="has no attribute 'opps'; it has"):
        _ = mini_tf.opps


def test_dir_offers_what_can_be_loaded_and_nothing_else():
    offered = [name for name in dir(mini_tf) if not name.startswith("_")]
    assert offered == sorted(mini_tf.__all__)
    assert "__version__" in dir(mini_tf)
    for name in offered:
        assert getattr(mini_tf, name).__doc__


def test_text_offers_what_reads_a_corpus():
    assert mini_tf.text.shakespeare is mini_tf.data.shakespeare
    assert mini_tf.text.read_corpus is mini_tf.data.read_corpus


def test_threads_are_told_to_be_quiet_unless_the_user_says_otherwise():
    code = "import mini_tf, os; print(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    assert _python(code, OPENBLAS_THREAD_TIMEOUT="28") == "28"


def test_the_wheel_is_told_of_every_package_and_every_file():
    """setup.cfg names the packages one by one, because one of them, mini_tf.labs, lies elsewhere: in labs/."""
    root = Path(mini_tf.__file__).parent.parent
    config = ConfigParser()
    config.read(root / "setup.cfg")
    packages = config["options"]["packages"].split()
    assert packages == sorted(packages)
    assert {*packages} == {"mini_tf.labs", *(".".join(file.relative_to(root).parts[:-1]) for file in root.glob("mini_tf/**/*.py"))}
    globs = {package: pattern.split(", ") for package, pattern in config["options.package_data"].items()}
    needed = [*(path for suffix in ("jinja", "css", "js", "cu") for path in root.glob(f"mini_tf/**/*.{suffix}")), *lab_files().values()]
    assert len(needed) > 100
    for path in needed:
        package = next(folder for folder in path.parents if name_of(folder, root) in packages)
        own = globs.get(name_of(package, root), []) + globs["*"]
        inside = path.relative_to(package)
        assert any(fnmatch(str(inside), pattern) and len(inside.parts) == pattern.count("/") + 1 for pattern in own), path


def name_of(folder, root):
    """The package that this folder becomes"""
    return "mini_tf.labs" if folder == root / "labs" else ".".join(folder.relative_to(root).parts)


def test_the_source_distribution_is_told_of_every_file():
    """setuptools takes the package itself; what else there is, MANIFEST.in has to name."""
    root = Path(mini_tf.__file__).parent.parent
    if not (root / ".git").exists():
        pytest.skip("the list of files is git's")
    named = (root / "MANIFEST.in").read_text(encoding="utf-8")
    grafted = tuple(f"{line.split()[1]}/" for line in named.splitlines() if line.startswith("graft "))
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    by_setuptools = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE", "MANIFEST.in", "mini_tf_pytest.py", ".gitignore")
    config = ConfigParser()
    config.read(root / "setup.cfg")
    data = [glob for globs in config["options.package_data"].values() for glob in globs.split(", ")]
    for file in files:
        inside = file.startswith("mini_tf/") and (file.endswith((".py", ".md")) or any(fnmatch(file, f"*{glob}") for glob in data))
        assert inside or file.startswith(grafted) or file in by_setuptools or file in named.split(), file


def test_no_file_of_the_package_has_more_than_400_lines():
    files = list(Path(mini_tf.__file__).parent.rglob("*.py"))
    assert len(files) > 200
    assert [path for path in files if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []
