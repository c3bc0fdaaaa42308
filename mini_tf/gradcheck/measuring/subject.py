"""What is checked: a function, brought to y, backward = f(…), with its inputs and parameters, in float64."""

import ast
import functools
import inspect
import linecache
import re
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from mini_tf.backend import to_host
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_ours
from mini_tf.gradcheck.measuring.brought import Brought
from mini_tf.gradcheck.measuring.naming import GIVEN, LEARNED, gradient_of, is_upstream, unmangled
from mini_tf.gradcheck.measuring.returned import flat
from mini_tf.gradcheck.measuring.stored import HOLDS_WEIGHTS, members, packed, reached, ways_in
from mini_tf.gradcheck.measuring.styles import argument_names, in_contract, numbers_with_gradients
from mini_tf.gradcheck.measuring.variables import Variables, named_in
from mini_tf.layers import MemoryFreed
from mini_tf.trace import place, source_line
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import DTypeLike

STATISTICS = re.compile(r"running|moving")               # of batches seen before, which have no gradient
MASK = re.compile(r"mask|keep|valid|padd?ing|one_?hot", re.I)          # of zeros and ones, which has no gradient
# Orthogonal projections: dX, projected, is the gradient for those X that have the form.
FORMS = {"symmetric": lambda x: (x + x.swapaxes(-1, -2)) / 2, "lower triangular": np.tril, "upper triangular": np.triu}


class Subject:
    """A function with its inputs and parameters.

    inputs    a list; arrays are host copies, floating ones in float64; everything else is passed on as it is
    params    {name: Parameter}, the trainable ones; inside `in_float64` their data are float64 copies too. They are
              those given, or, with None, f's own (see `own_parameters`)
    names     of the inputs
    by_name   names of inputs that were given by name, as options are; without a gradient they are not tested
    leaves    {name: (name of the input, way)} of arrays in a dict, a list or a tuple: "params.W" is params["W"]
    left_out  names of what a learner's function gives no gradient for, in its own style (see `leave_out`)
    steps     the functions inside f that are checked by themselves (see `reasons.theirs`); None before they are known
    helpers   functions that look like steps, and do not run by themselves
    forms     {name: "symmetric"} of matrices that have such a form (see FORMS) wherever the model comes: others are not
              tried, and of their gradients only the part of that form counts
    """

    def __init__(
        self, f: Any, inputs: Sequence[Any], params: dict | list | None, by_name: Collection[str] = (),
    ):  # fmt: skip
        self.f, self.by_name = in_contract(f, inputs), by_name
        inputs = numbers_with_gradients(self.f, inputs)
        self.names, self.given, self.leaves = self._spread(inputs)
        self.inputs = [_copied(x) for x in self.given]
        self.left_out, self.steps, self.helpers, self.forms = [], None, [], {}
        if params is None or _are_names(params):
            params = own_parameters(self.f, params) | self._parameters_of_layers(params)
        params = named_parameters(params)
        self.not_parameters = {name: p for name, p in params.items() if not is_parameter(p)}
        params = {name: p for name, p in params.items() if is_parameter(p)}
        if isinstance(self.f, Brought):                  # an object's array may be named as an input of its forward
            taken = argument_names(self.f, len(inputs))
            params = {f"self.{name}" if name in taken else name: p for name, p in params.items()}
        self.all_params = list({id(p): p for p in params.values()}.values())
        self.params = {name: p for name, p in params.items() if getattr(p, "trainable", True)}
        if not any(map(is_float, self.inputs)) and not params:           # f(2.0): the gradient of the number is wanted
            self.inputs = [np.array(x) if isinstance(x, float) else x for x in self.inputs]
        self.option = None

    def _parameters_of_layers(self, names):
        """{name: Parameter} of the layers that f is given; none if only some are asked for"""
        given = {name: x for name, x in zip(self.names, self.given) if names is None and has_parameters(x)}
        return {f"{name}.{own}": p for name, x in given.items() for own, p in x.parameters().items()}

    def _spread(self, inputs):
        """(names, inputs, leaves): behind a dict, a list or a tuple come the arrays in it, params.W and params.b"""
        names, given, leaves = [], [], {}
        for name, x in zip(argument_names(self.f, len(inputs)), map(native, inputs)):
            ways = ways_in(x) if isinstance(self.f, Brought) else []
            inside = {".".join(map(str, (name, *way))): way for way in ways}
            names += [name, *inside]
            given += [x, *(native(reached(x, way)) for way in inside.values())]
            leaves |= {leaf: (name, way) for leaf, way in inside.items()}
        return names, given, leaves

    @contextmanager
    def in_float64(self) -> Iterator[None]:
        """Inside the block, the parameters hold float64 copies of their data, and no gradients."""
        self.before = [(p, p.data, p.grad) for p in self.all_params]
        try:
            for p in self.all_params:
                p.data, p.grad = _copied(p.data), None
            yield
        finally:
            self.set_option(None)
            for p, data, grad in self.before:
                p.data, p.grad = data, grad

    @contextmanager
    def as_given(self) -> Iterator[None]:
        """For use inside `in_float64`: in this block, inputs and parameters are the original ones."""
        inputs, data = self.inputs, [(p, p.data) for p in self.all_params]
        try:
            self.inputs = self.given
            for p, original, _ in self.before:
                p.data = native(original)
            yield
        finally:
            self.inputs = inputs
            for p, array in data:
                p.data = array

    @contextmanager
    def in_dtype(self, dtype: DTypeLike) -> Iterator[None]:
        """For use inside `in_float64`: in this block, all floating inputs and parameters have that dtype."""
        inputs, data = self.inputs, [(p, p.data) for p in self.all_params]
        try:
            self.inputs = [x.astype(dtype) if is_float(x) else x for x in inputs]
            for p in self.all_params:
                p.data = p.data.astype(dtype)
            yield
        finally:
            self.inputs = inputs
            for p, array in data:
                p.data = array

    @property
    def tensors(self) -> dict[str, Array]:
        """{name: array} of all that has a gradient: the floating inputs, then the parameters."""
        inputs = {name: x for name, x in zip(self.names, self.inputs) if is_float(x)}
        tensors = inputs | {name: p.data for name, p in self.params.items()}
        return {name: x for name, x in tensors.items() if name not in self.left_out}

    def replace(self, name: str, array: Any) -> None:
        """Replace a tensor, or any other input, by another array."""
        if name in self.params:
            self.params[name].data = array
        else:
            self.inputs[self.names.index(name)] = array

    def options(self) -> dict[str, float]:
        """{name: number} of what f was given, takes by default, keeps as an object, or finds in its file:
        eps, reg, conv_param['pad'], self.slope, STRIDE
        """
        given = dict(zip(self.names, self.inputs))
        dicts = {name: x for name, x in given.items() if isinstance(x, dict)}
        given |= {f"{name}[{key!r}]": x for name, those in dicts.items() for key, x in those.items()}
        kept = {f"self.{name}": x for name, x in members(getattr(self.f, "its_object", None)).items()}
        known = given | self._defaults() | kept
        known |= {name: x for name, x in self.constants().items() if name not in known}
        return {name: x for name, x in known.items() if type(x) in (int, float)}

    def tuples(self) -> dict[str, tuple[int, ...]]:
        """{name: numbers} of the tuples of whole numbers that f was given, or takes by default: stride=(2, 1)"""
        known = dict(zip(self.names, self.inputs)) | self._defaults()
        return {name: x for name, x in known.items() if isinstance(x, tuple) and x and {*map(type, x)} == {int}}

    @property
    def optional(self) -> set[str]:
        """The names of inputs that were given by name, or that have a default."""
        try:
            parameters = inspect.signature(self.f).parameters.values()
        except (TypeError, ValueError):
            return {*self.by_name}
        return {*self.by_name, *(p.name for p in parameters if p.default is not p.empty)}

    def constants(self) -> dict[str, float]:
        """{name: number} of the numbers in f's file that f uses, and what it calls there: STRIDE = 2"""
        waiting = [self.f.written_forward, self.f.written_backward] if isinstance(self.f, Brought) else [self.f]
        if is_ours(waiting[0]):
            return {}
        variables = Variables(waiting[0])
        read = named_in(waiting, variables)
        return {name: x for name, x in read.items() if type(x) in (int, float) and name not in variables.around}

    def _globals(self):
        """The names in f's file, and what they stand for"""
        f = getattr(self.f, "written_forward", self.f)
        return getattr(inspect.unwrap(getattr(f, "__func__", f)), "__globals__", {})

    @contextmanager
    def with_option(self, name: str, number: float) -> Iterator[None]:
        """Inside the block, that option is another number."""
        before = self.option
        try:
            self.set_option((name, number))
            yield
        finally:
            self.set_option(before)

    def set_option(self, option: tuple[str, float] | None) -> None:
        """From now on, one option is another number, (name, number); None: all are as they were given."""
        if option == self.option:
            return
        if self.option is not None:
            self.undo_option()
        self.option = option
        if option is None:
            return
        name, number = option
        if name.startswith("self."):
            machine, own = self.f.its_object, name.removeprefix("self.")
            self.undo_option = functools.partial(setattr, machine, own, getattr(machine, own))
            setattr(machine, own, number)
            return
        names, inputs = self.names, dict(zip(self.names, self.inputs))
        owner, _, key = name.partition("[")
        if key:                                          # conv_param['pad']
            self.undo_option = functools.partial(self.replace, owner, inputs[owner])
            self.replace(owner, inputs[owner] | {ast.literal_eval(key[:-1]): number})
            return
        if name not in inputs | self._defaults():
            space = self._globals()
            self.undo_option = functools.partial(space.__setitem__, name, space[name])
            space[name] = number
            return

        def undo():                                      # arrays that were replaced meanwhile stay
            now = dict(zip(self.names, self.inputs)) | ({name: inputs[name]} if name in inputs else {})
            self.names, self.inputs = names, [now[one] for one in names]

        self.undo_option = undo
        all_of_them = inputs | self._defaults() | {name: number}
        self.names, self.inputs = list(all_of_them), list(all_of_them.values())

    def _defaults(self):
        """{name: default} of the arguments behind the inputs, as far as they can be given by place."""
        try:
            behind = list(inspect.signature(self.f).parameters.values())[len(self.inputs) - len(self.leaves) :]
        except (TypeError, ValueError):
            return {}
        return {p.name: p.default for p in takewhile(lambda p: p.kind == p.POSITIONAL_OR_KEYWORD, behind)}

    def forward(self) -> tuple[Any, Backward]:
        """(y, backward)"""
        return self.f(*self.arguments())

    def arguments(self) -> list[Any]:
        """What f is given: the inputs, matrices in their forms, arrays in their dicts and lists."""
        if not self.forms and not self.leaves:
            return self.inputs
        given, inside = dict(zip(self.names, self.inputs)), {}
        given |= {name: FORMS[form](given[name]) for name, form in self.forms.items() if name in given}
        for leaf, (name, way) in self.leaves.items():
            inside.setdefault(name, {})[way] = given.pop(leaf)
        return [packed(x, inside.get(name, {})) for name, x in given.items()]

    def is_defined(self) -> bool:
        """True if the forward runs here, and y is finite."""
        try:
            with np.errstate(all="ignore"):
                return bool(np.isfinite(self.forward()[0]).all())
        except FAILURES:
            return False

    def run(self, dy: Array | float) -> dict[str, Any]:
        """{name: gradient} of all tensors, from a new forward; parameters start without gradients, dy stays."""
        for p in self.params.values():
            p.grad = None
        _, backward = self.forward()
        return self.named(backward(dy.copy() if isinstance(dy, np.ndarray) else dy))

    def named(self, returned: Any) -> dict[str, Any]:
        """{name: gradient} from what a backward returned and what it added to the parameters."""
        returned = self.listed(returned)
        gradients = dict(zip(self.receivers(len(returned)), returned))
        for name, form in self.forms.items():
            if np.shape(gradients.get(name)) == np.shape(self.tensors.get(name)):
                gradients[name] = FORMS[form](gradients[name])
        return gradients | {name: p.grad for name, p in self.params.items()}

    def leave_out(self, gradients: dict[str, Any]) -> tuple[dict[str, Array], list[str]]:
        """Leave out what has no gradient here, if f is in a style in which data need none, or it was given by name.

        Returns ({name: array} that must have one to pass, names of data), of those that y depends on.
        """
        unknown = isinstance(self.f, Brought) and any(map(is_float, flat(self.f.came)))      # whose is what came back?
        if all(g is None for g in gradients.values()) and not unknown:
            return {}, []
        brought = isinstance(self.f, Brought)
        here = [name for name in self.params if brought and name not in self.left_out]
        unread = [name for name in here if not self.depends_on(name)]
        idle = [name for name in unread if self.f.overwrites(self.params[name], self.arguments())]
        given = [] if is_ours(self.f) else self.tensors.keys() & {*filter(MASK.search, self.names)}
        plain = [name for name in given if is_zeros_and_ones(self.tensors[name])]        # masks of floats
        may_lack_one = self.tensors if brought else {*self.by_name, *plain}
        without = [name for name in self.tensors if gradients.get(name) is None and name in may_lack_one]
        missing = {name: x for name, x in self.tensors.items() if name in without or name in idle}
        used = [name for name in missing if name not in idle and self.depends_on(name)]
        self.left_out += missing
        data = [name for name in used if brought and name not in self.params and self.f.inputs_are_data
                and name not in self.f.may_have_one]     # fmt: skip
        masks = [name for name in used if is_zeros_and_ones(missing[name])]
        data += [name for name in masks if name in self.by_name or MASK.search(name)]
        learned = {holder for name, (holder, _) in self.leaves.items() if name not in missing}
        learned |= {name for name, x in zip(self.names, self.given) if not isinstance(x, (dict, list, tuple))}
        data = [name for name in data if name not in self.leaves or self.leaves[name][0] not in learned]
        data += [name for name in used if name in self.leaves and STATISTICS.match(str(self.leaves[name][1][-1]))]
        data += [name for name in used if name in self.params and GIVEN.match(name.rpartition(".")[2])]
        last = {name: unmangled(name.rpartition(".")[2]) for name in used}
        data += [name for name in used if name in self.params and last[name][:1] == "_"]
        weights = [name for name in used if LEARNED.match(last[name].strip("_"))
                   or (last[name][:1] == "_" and HOLDS_WEIGHTS.match(last[name]))]       # fmt: skip
        data = [name for name in dict.fromkeys(data) if name not in weights]
        return {name: missing[name] for name in used if name not in data}, data

    def depends_on(self, name: str) -> bool:
        """True if y depends on the tensor."""
        x, y, rng = self.tensors[name], self.forward()[0], np.random.default_rng(0)
        try:                                             # each entry by another number: softmax does not see b + 0.1
            self.replace(name, x * rng.uniform(0.5, 1.5, x.shape) + rng.uniform(0.1, 0.5, x.shape))
            return not np.array_equal(y, self.forward()[0])
        except FAILURES:                                 # a mask that counts, and counts too much now
            return True
        finally:
            self.replace(name, x)

    def listed(self, returned: Any) -> list[Any]:
        """What a backward returned, as a list: gradients by name, {"x": dx, "dw": dw}, in the order of the inputs."""
        if not isinstance(returned, dict):
            gradients = as_list(list(returned) if inspect.isgenerator(returned) else returned)
            while len(gradients) > len(self.names) and gradients[-1] is None and not is_ours(inspect.unwrap(self.f)):
                del gradients[-1]                        # of an optional bias that is not given
            if len(gradients) == len(self.floats) + 1 and type(gradients[0]).__name__ == "NoTangent":
                del gradients[0]                         # Julia's, of f itself
            return split_up(gradients, [self.inputs[self.names.index(name)] for name in self.floats])
        return [gradient_of(name, returned) for name in self.floats]

    def receivers(self, count: int) -> list[str]:
        """The names of the inputs that `count` returned gradients belong to.

        An op declares them; others return one for each array (None for ids and masks), layers for floating ones.
        """
        known = getattr(self.f, "arrays", self.arrays)
        by_place = [name for name in self.floats if name not in self.by_name]
        or_none = [name for name, x in zip(self.names, self.inputs) if hasattr(x, "dtype") or x is None]
        found = known, self.arrays, self.floats, self.names, by_place, or_none
        return next((names for names in found if len(names) == count), [])

    @property
    def arrays(self) -> list[str]:
        return [name for name, x in zip(self.names, self.inputs) if hasattr(x, "dtype")]

    @property
    def floats(self) -> list[str]:
        return [name for name, x in zip(self.names, self.inputs) if is_float(x)]

    @property
    def masks(self) -> dict[str, Array]:
        """{name: mask} of the inputs that are booleans, or integers 0 and 1"""
        return {name: x for name, x in zip(self.names, self.inputs) if _is_mask(x) and np.ndim(x)}

    @property
    def ids(self) -> dict[str, Array]:
        """{name: ids} of the integer inputs that are no masks"""
        given = zip(self.names, self.inputs)
        return {name: x for name, x in given if kind_of(x) in ("i", "u") and np.size(x) and not _is_mask(x)}


def as_list(gradients: Any) -> list[Any]:
    """What a backward returned, as a list; a single gradient comes bare, and those of layers may be a list in it."""
    return flat(gradients)


def split_up(gradients: list[Any], arrays: Sequence[Array]) -> list[Any]:
    """The gradients, if they come strung together, as one vector, in parts like the arrays; else as they are"""
    one = gradients[0] if len(gradients) == 1 < len(arrays) else None
    if not is_float(one) or one.ndim != 1 or one.size != sum(x.size for x in arrays):
        return gradients
    parts = np.split(one, np.cumsum([x.size for x in arrays])[:-1])
    return [part.reshape(x.shape) for part, x in zip(parts, arrays)]


def call_backward(subject: Subject, backward: Backward, dy: Array | float) -> Any:
    """backward(dy); if it has run already and freed its memory, that of a new forward."""
    try:
        return backward(dy)
    except (MemoryFreed, StopIteration):                 # or it is a generator's send
        return subject.forward()[1](dy)


def kind_of(x: Any) -> str:
    """NumPy's letter for the dtype of x: "b" bool, "i" or "u" integer, "f" floating; "" if it has no dtype."""
    return getattr(getattr(x, "dtype", None), "kind", "")


def _is_mask(x):
    """True for booleans, and for integers that are all 0 or 1, both of them."""
    return kind_of(x) == "b" or (kind_of(x) in ("i", "u") and is_zeros_and_ones(x))


def is_zeros_and_ones(x: Array) -> bool:
    """True if x has zeros and ones, both of them, and nothing else: it may be a mask."""
    return set(np.unique(x)) == {0, 1}


def native(x: Any) -> Any:
    """An array with its numbers' bytes in the processor's own order, as all results have it; others as they are."""
    return x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) and not x.dtype.isnative else x


def is_float(x: Any) -> bool:
    return kind_of(x) == "f" and hasattr(x, "shape")


def name_of(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def own_parameters(f: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """{name: Parameter} of a layer, of the layer whose method f is, or of the layers that a function's text names.

    Of somebody's object, its arrays: see `styles.Machine`. names: only these.
    """
    if names is not None:
        found = own_parameters(f)
        called = {name: {own: p for own, p in found.items() if name in (own, own.rpartition(".")[2])} for name in names}
        return {own: p for name in names for own, p in (called[name] or {name: name}).items()}
    if isinstance(f, Brought):
        return f.parameters
    f = f.func if isinstance(f, functools.partial) else f
    for owner in (f, getattr(f, "__self__", None)):
        if has_parameters(owner):
            return owner.parameters()
    try:
        named = inspect.getclosurevars(f)
    except TypeError:                                    # not a plain function
        return {}
    found = {name: x for name, x in (named.globals | named.nonlocals).items() if has_parameters(x)}
    if len(found) == 1:
        return next(iter(found.values())).parameters()
    return {f"{name}.{own}": p for name, x in found.items() for own, p in x.parameters().items()}


def has_parameters(x: Any) -> bool:
    """True for a layer or a model, not for its class: its parameters() gives {name: Parameter}."""
    if inspect.isclass(x) or not callable(getattr(x, "parameters", None)):
        return False
    parameters = x.parameters()
    return isinstance(parameters, dict) and all(map(is_parameter, parameters.values()))


def is_parameter(p: Any) -> bool:
    return hasattr(p, "data") and hasattr(p, "grad")


def named_parameters(params: dict[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """{name: Parameter}, from such a dict or from a list of Parameters."""
    return params if isinstance(params, dict) else {f"parameter {i}": p for i, p in enumerate(params)}


def _are_names(params):
    return isinstance(params, (list, tuple)) and len(params) > 0 and all(isinstance(p, str) for p in params)


def upstream_name(backward: Any) -> str:
    """What a learner's backward calls the gradient that it is given, "dout"; "dy" where that is not plain to see."""
    try:
        parameters = inspect.signature(inspect.unwrap(backward)).parameters.values()
    except (TypeError, ValueError):
        return "dy"
    names = [p.name for p in parameters if p.name not in ("self", "ctx")]
    like_gradients = [is_upstream(name) for name in [*names, "", ""][:2]]
    return names[0] if like_gradients == [True, False] else "dy"          # of several outputs, dy is all of them


def told(error: BaseException, f: Any) -> str:
    """An exception in one line: its message, the line of code that raised it, and names there that are still `...`.

    f: the function that was called; if the call itself failed, its line is given instead.
    """
    frames = [*traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if not re.search("site-packages|^<frozen", frame[0].f_code.co_filename)]
    frame, line = (own or frames)[-1]
    path = frame.f_code.co_filename
    if Path(path).parent == Path(__file__).parent:
        return f"{type(error).__name__}: {error} (of {source_line(f) or name_of(f)})"
    linecache.checkcache(path)
    words = re.findall(r"\w+", linecache.getline(path, line))
    blanks = [name for name, value in frame.f_locals.items() if value is ... and name in words]
    blank = "".join(f"; {name} is still `...`, a blank to fill first" for name in blanks)
    return f"{type(error).__name__}: {error} (at {place(path, line)}){blank}"


def copied(x: Any) -> Any:
    """A copy of an array, which others may then write into; others as they are"""
    return np.array(x) if isinstance(x, np.ndarray) else x


def _copied(x):
    if is_float(x):
        return np.array(to_host(x), dtype=np.float64, order="C")
    return np.array(to_host(x)) if hasattr(x, "dtype") and np.ndim(x) else x
