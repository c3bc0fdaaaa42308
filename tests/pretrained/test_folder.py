"""Folders as Hugging Face writes them: what is read, and what is refused with one sentence."""

import json

from mini_tf.errors import UserError
from mini_tf.pretrained.folder import Arrays, read_config

import numpy as np
import pytest
from safetensors.numpy import save_file

x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
INDEX = "model.safetensors.index.json"


def write_bits(path, **arrays):
    """{name: (dtype in the file, array of its bits)}, written by the format's rules, not by a library."""
    header, data = {}, b""
    for name, (dtype, bits) in arrays.items():
        header[name] = {"dtype": dtype, "shape": list(bits.shape), "data_offsets": [len(data), len(data) + bits.nbytes]}
        data += bits.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_embd": 5}))
    save_file({"transformer.x": x, "b": np.arange(4.0)}, tmp_path / "model.safetensors")
    return tmp_path


def test_names_lose_their_prefix_and_arrays_are_float32(folder):
    arrays = Arrays(folder, "transformer.")
    assert read_config(folder)["n_embd"] == 5
    assert set(arrays) == {"x", "b"}
    assert arrays["x"].dtype == np.float32
    np.testing.assert_array_equal(arrays["x"], x)
    assert arrays.places["x"].shape == (3, 5)
    assert arrays.places["x"].size == 15


def test_half_precision_is_read_to_the_last_bit(tmp_path):
    upper = (x.view(np.uint32) >> 16).astype(np.uint16)                  # bfloat16 of x, cut off
    write_bits(tmp_path / "model.safetensors", half=("F16", x.astype(np.float16)), b=("BF16", upper), x=("F32", x))
    arrays = Arrays(tmp_path)
    np.testing.assert_array_equal(arrays["half"], x.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(arrays["b"].view(np.uint32), x.view(np.uint32) & np.uint32(0xFFFF0000))
    np.testing.assert_allclose(arrays["b"], x, rtol=2**-7)
    np.testing.assert_array_equal(arrays["x"], x)
    assert {a.dtype for a in arrays.values()} == {np.dtype("float32")}


def test_bfloat16_as_torch_reads_it(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    save = pytest.importorskip("safetensors.torch").save_file
    tensor = torch.from_numpy(x).to(torch.bfloat16)
    save({"x": tensor}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(Arrays(tmp_path)["x"], tensor.float().numpy())


def test_arrays_in_several_files(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    save_file({"transformer.y": 2 * x}, folder / "model-00002-of-00002.safetensors")
    names = {"transformer.x": 1, "b": 1, "transformer.y": 2}
    files = {name: f"model-0000{which}-of-00002.safetensors" for name, which in names.items()}
    (folder / INDEX).write_text(json.dumps({"weight_map": files}))
    arrays = Arrays(folder, "transformer.")
    assert set(arrays) == {"x", "b", "y"}
    np.testing.assert_array_equal(arrays["y"], 2 * x)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match="model-00002-of-00002.safetensors cannot be read .No such file or directory"):
        Arrays(folder)
    for text in ("[]", "{}", '{"weight_map": {"x": 3}}', "{"):
        (folder / INDEX).write_text(text)
        with pytest.raises(UserError, match=INDEX):
            Arrays(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "config.json cannot be read .No such file or directory.; expected a model's folder as Hugging Face has"),
        ("", "config.json is not JSON"),
        ("[" * 100_000, "config.json is not JSON"),
        ("3", "config.json has 3 in it, expected a JSON object"),
        ("{}", "the architecture None, expected gpt2 or llama"),
        ('{"model_type": ["gpt2"]}', "the architecture .'gpt2'., expected gpt2 or llama"),
        ('{"model_type": "mamba"}', "the architecture 'mamba', expected gpt2 or llama"),
    ],
)
def test_configurations_that_are_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=message):
        read_config(tmp_path)


def test_another_architecture_than_the_one_asked_for(folder):
    with pytest.raises(UserError, match="the architecture 'gpt2', expected llama$"):
        read_config(folder, "llama")


def test_no_folder_but_a_file(folder):
    with pytest.raises(UserError, match="model.safetensors/config.json cannot be read .Not a directory"):
        read_config(folder / "model.safetensors")


def test_files_that_are_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for content in (b"", b"ab", whole[:20], whole[:-1], whole + b"\0", b"\x80\x04" + whole, b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(UserError, match="model.safetensors is cut off, or not a .safetensors file"):
            Arrays(folder)
    path.unlink()
    with pytest.raises(UserError, match="model.safetensors cannot be read .No such file or directory"):
        Arrays(folder)
    path.mkdir()
    with pytest.raises(UserError, match="model.safetensors is a folder, expected a .safetensors file"):
        Arrays(folder)


def test_types_and_numbers_that_are_refused(tmp_path):
    nan = np.array([1, np.nan], np.float32)
    write_bits(tmp_path / "model.safetensors", ids=("I64", np.arange(3)), x=("F8_E4M3", np.zeros(2, np.uint8)),
               nan=("F32", nan))  # fmt: skip
    arrays = Arrays(tmp_path)                            # nobody has asked for them yet
    with pytest.raises(UserError, match="the array ids is of type I64, expected F32, F16, BF16"):
        arrays["ids"]
    with pytest.raises(UserError, match="the array x is of type F8_E4M3"):
        arrays["x"]
    with pytest.raises(UserError, match="the array nan has numbers that are not finite"):
        arrays["nan"]


def test_names_and_shapes(folder):
    arrays = Arrays(folder, "transformer.")
    np.testing.assert_array_equal(arrays.of_shape("x", (3, 5)), x)
    with pytest.raises(UserError, match=r"the array x has shape \(3, 5\), by its config.json it has \(5, 3\)"):
        arrays.of_shape("x", (5, 3))
    with pytest.raises(UserError, match="has no array y, which its config.json asks for"):
        arrays.of_shape("y", (5, 3))
    arrays.check_no_others({"x", "b", "more"})
    with pytest.raises(UserError, match="has an array b, which a model of its config.json does not have"):
        arrays.check_no_others({"x"})
