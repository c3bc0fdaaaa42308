"""The terms of a line are those of its expression, and nothing is run a second time that has side effects."""

import textwrap

from mini_tf.explore.page_data import PageData
from mini_tf.gradcheck.learner import load
from tests.explore.conftest import decoded, tiny_reading

import numpy as np
import pytest


def value(part, arrays):
    return decoded(arrays[part["value"]]).astype(float) if isinstance(part["value"], int) else float(part["value"]["text"])


def combined(part, arrays):
    """What the parts of a part give together, by NumPy; the part's own value if it has none."""
    if "op" not in part:
        return value(part, arrays)
    of = [value(one, arrays) for one in part["of"]]
    shape = np.shape(value(part, arrays))
    match part["op"]:
        case "+":
            return sum(sign * one for sign, one in zip(part["signs"], of))
        case "*":
            return np.prod(np.broadcast_arrays(*of), axis=0)
        case "/":
            return of[0] / of[1]
        case "**":
            return of[0] ** of[1]
        case "@":
            return of[0] @ of[1]
        case "sum" | "mean":
            return getattr(np, part["op"])(of[0], axis=tuple(part["axes"]), keepdims=part["keep"])
        case "sum_to":
            return of[0].reshape(-1, *shape).sum(0)
        case "reshape":
            return of[0].reshape(shape)
        case "swapaxes":
            return of[0].swapaxes(*part["axes"])
        case name:
            return getattr(np, name)(of[0])


def all_parts(part):
    yield part
    for one in part.get("of", []):
        yield from all_parts(one)


def test_all_parts_of_a_model_give_their_values():
    read = tiny_reading()
    pages = PageData(read.axes)
    recorder = pages.record(read.run)
    seen = {}
    for line in recorder.lines:
        for _, _, parts in line.made:
            for part in all_parts(parts) if parts else ():
                np.testing.assert_allclose(combined(part, pages.store.arrays), value(part, pages.store.arrays), rtol=2e-5, atol=1e-6)
                seen[part.get("op")] = seen.get(part.get("op"), 0) + 1
    assert {"+", "*", "/", "@", "sum", "mean", "sum_to", "reshape", "swapaxes", "exp", "sqrt"} <= seen.keys()
    assert sum(seen.values()) > 300


def parts_of_backward(tmp_path, body, **shapes):
    """[(name, parts)] of the lines of a learner's backward"""
    path = tmp_path / "mine.py"
    lines = textwrap.indent(textwrap.dedent(body).strip(), 8 * " ")
    path.write_text(
        f"import numpy as np\n\ncalls = []\ndraws = np.random.default_rng(0)\n\ndef note(x):\n    calls.append(1)\n    return x\n\n\ndef f(x, W):\n    y = x @ W\n\n"
        f"    def backward(dy):\n{lines}\n        return dx, dW\n\n    return y, backward\n", encoding="utf-8",
    )  # fmt: skip
    f, inputs, _ = load(f"{path}::f", ["x=3,4", "W=4,5"])
    pages = PageData()

    def run(on_backward):
        y, backward = f(*inputs)
        on_backward()
        run.gradients = backward(np.ones_like(y))

    recorder = pages.record(run)
    assert getattr(recorder, "error", None) is None
    found = [(name, parts) for line in recorder.lines if line.frame.is_backward for name, _, parts in line.made if parts]
    return found, f, pages


def test_a_matrix_product_has_its_two_factors(tmp_path):
    found, _, pages = parts_of_backward(tmp_path, "dx = dy @ W.T\ndW = x.T @ dy")
    (name, dx), (_, dW) = found[:2]
    assert (name, dx["op"], [one["src"] for one in dx["of"]]) == ("dx", "@", ["dy", "W.T"])
    assert [one["src"] for one in dW["of"]] == ["x.T", "dy"]
    assert value(dx["of"][1], pages.store.arrays).shape == (5, 4)


def test_a_change_in_place_has_what_was_before(tmp_path):
    found, _, pages = parts_of_backward(tmp_path, "dx = dy @ W.T\ndx += 1\ndW = x.T @ dy")
    parts = next(parts for _, parts in found if "before" in str(parts))
    before, added = (value(one, pages.store.arrays) for one in parts["of"])
    np.testing.assert_allclose(added, 1, atol=1e-12)
    np.testing.assert_allclose(before + added, value(parts, pages.store.arrays))


def test_a_function_with_side_effects_is_not_called_again(tmp_path):
    found, f, _ = parts_of_backward(tmp_path, "dx = note(dy) @ W.T + 0 * x\ndW = 2 * (x.T @ note(dy))")
    assert len(f.__globals__["calls"]) == 2              # once each
    names = [name for name, _ in found]
    assert "dx" in names                                 # what note returned was recorded: the terms are known
    assert "dW" in names


@pytest.mark.parametrize(
    "expression",
    ["np.random.rand(3, 4)", "draws.standard_normal((3, 4))", "dy @ W.T + draws.random((3, 4))", "np.add(x, 1, out=x)"],
)
def test_nothing_is_drawn_or_written_a_second_time(tmp_path, expression):
    found, f, _ = parts_of_backward(tmp_path, f"dx = {expression}\ndW = x.T @ dy")
    assert "dx" not in dict(found)
    again, drawn = np.random.default_rng(0), f.__globals__["draws"]
    if "standard_normal" in expression:
        again.standard_normal((3, 4))
    elif "draws" in expression:
        again.random((3, 4))
    assert drawn.random() == again.random()              # as many numbers were drawn as the line itself draws
