"""Arrays in files: whole, or refused with one sentence."""

import hashlib
import json
import os
import socket
import tracemalloc

from mini_tf.errors import UserError
from mini_tf.training.archive import NO_DIGEST, VERSION, read_archive, write_archive

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

ARRAYS = {
    "b": np.arange(12, dtype=np.float32).reshape(3, 4).T,                # not contiguous
    "ä": np.ones((2, 2)), "n": np.array(3), "none": np.zeros((0, 3), np.float32), "odd": np.arange(3, dtype=np.uint8),
    "big": np.arange(3, dtype=">i4"), "yes": np.array([True, False]), "half": np.ones(2, np.float16),
}  # fmt: skip
ABOUT = {"config": {"n": 3, "text": 'ü"\\', "large": 2**70, "list": [1, 0.1]}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "whole.safetensors"
    write_archive(path, "model", ARRAYS, ABOUT)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.safetensors"


def test_what_is_written_is_read(path):
    write_archive(path, "model", ARRAYS, ABOUT)
    arrays, about = read_archive(path, "model")
    assert about == {"kind": "model", "version": VERSION, **ABOUT}
    assert set(arrays) == set(ARRAYS)
    for name, x in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], x)
        assert arrays[name].dtype == x.dtype.newbyteorder("=")
        assert arrays[name].shape == x.shape


def test_equal_contents_give_equal_bytes(path, whole):
    write_archive(path, "model", ARRAYS, ABOUT)
    assert path.read_bytes() == whole


def test_arrays_are_not_copied_to_be_written(path):
    arrays = {f"x{i}": np.ones(1 << 20) for i in range(8)}               # 64 MB
    tracemalloc.start()
    write_archive(path, "training", arrays, {})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20e6


def test_other_tools_can_read_it(path):
    write_archive(path, "model", ARRAYS, ABOUT)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata()["format"] == "pt"         # transformers refuses files without it
        np.testing.assert_array_equal(file.get_tensor("b"), ARRAYS["b"])


def test_torch_can_read_it(path):
    torch = pytest.importorskip("safetensors.torch")
    write_archive(path, "model", ARRAYS, ABOUT)
    assert torch.load_file(path)["b"].numpy().tolist() == ARRAYS["b"].tolist()


def test_no_flipped_bit_is_missed(path, whole):
    for bit in range(0, 8 * len(whole), 3):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="a.safetensors "):
            read_archive(path, "model")


def test_no_missing_end_is_missed(path, whole):
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match="is damaged|or damaged|or is damaged"):
            read_archive(path, "model")


@settings(max_examples=200)
@given(st.data())
def test_random_damage_is_one_sentence(whole, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    start = data.draw(st.integers(0, len(whole) - 1))
    new = data.draw(st.binary(min_size=0, max_size=60))
    damaged = whole[:start] + new + whole[start + data.draw(st.integers(0, 60)) :]
    path.write_bytes(damaged)
    if damaged == whole:
        read_archive(path, "model")
        return
    with pytest.raises(UserError) as error:
        read_archive(path, "model")
    assert "\n" not in str(error.value)


def resealed(content):
    """The content with a checksum that fits it."""
    start = content.index(b'"mini_tf_sha256":"') + 18
    content = content[:start] + NO_DIGEST.encode() + content[start + 64 :]
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[start + 64 :]


def test_a_newer_version_is_refused(path, whole):
    path.write_bytes(resealed(whole.replace(b'\\"version\\": 2', b'\\"version\\": 3')))
    with pytest.raises(UserError, match="is of version 3, expected at most 2: a newer mini_tf wrote it"):
        read_archive(path, "model")


def test_files_of_others_are_refused(path, tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*, expected a model"):
        read_archive(path, "model")
    save_file({"a": np.zeros(2)}, path)
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        read_archive(path, "model")
    header = json.dumps({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")           # NumPy has no such type
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        read_archive(path, "model")
    save_file({"a": np.zeros(2)}, path, {"mini_tf": json.dumps({"model": "GPT"})})
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        read_archive(path, "model")
    deep = b'{"__metadata__":{"mini_tf_sha256":"' + b"0" * 64 + b'"},"a":' + b"[" * 100_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(UserError, match="is damaged"):
        read_archive(path, "model")
    write_archive(path, "training", ARRAYS, ABOUT)
    with pytest.raises(UserError, match="has the state of a training in it, expected a model"):
        read_archive(path, "model")


@pytest.mark.skipif(os.name == "nt", reason="has no pipes among its files")
def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "nowhere", tmp_path / "dangling")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    with socket.socket(socket.AF_UNIX) as a_socket:
        a_socket.bind(str(tmp_path / "socket"))
        for name, message in {
            "": "is a folder", "pipe": "is a pipe", "socket": "is a socket", "dangling": "there is no file",
            "loop": "there is no file|cannot be read", "x" * 300: "cannot be read: File name too long",
        }.items():  # fmt: skip
            with pytest.raises(UserError, match=message):
                read_archive(tmp_path / name, "model")
