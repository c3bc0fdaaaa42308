"""The map of a computation: its blocks, the arrays that flow between them, and the gradients that flow back.

A block is a call of a layer, of an op, or of a learner's own function. Which block reads what another one has made is
not declared anywhere: it is found from the arrays themselves, since each array of a recording has a number of its own.
Where a line stands between two blocks, as in x + y or Phi[:, -1], the arrays that it reads lead on; a line that joins
several of them is a block, too. Inside an op every line is one.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mini_tf.explore.arrays import Store
from mini_tf.explore.recording import Frame, Line, Named, Recorder, own_nodes
from mini_tf.layers import Layer, MultiHeadAttention, Trunk
from mini_tf.places import is_theirs

GIVEN = -1               # in an edge: from the arguments of the block around it, instead of a block inside it
SHAPE = "shape", "dtype", "ndim", "size"
MOST_LINES = 40          # of a function whose lines are drawn as blocks
NAMES = {                # of classes, functions and attributes, where the code has another one than the field
    "A": "readout", "TiedReadout": "readout", "Embedding": "word vectors", "embedding": "word vectors",
    "PositionalEncoding": "positions", "LearnedPositions": "positions", "TransformerLayer": "layer",
    "DecoderLayer": "layer", "MultiHeadAttention": "attention", "AdditiveAttention": "additive attention",
    "MultiplicativeAttention": "attention", "FeedForward": "feed-forward", "LayerNorm": "layer norm",
    "layer_norm": "layer norm", "RMSNorm": "RMS norm", "rms_norm": "RMS norm", "residual_relu": "add x + relu(y)",
    "masked_softmax": "masked softmax", "grouped_attention": "grouped attention", "mean_pool": "mean over the words",
    "cross_entropy": "cross-entropy", "mse": "mean squared error", "Recurrent": "recurrent",
    "BothDirections": "both directions",
}  # fmt: skip

Edge = tuple[int, int, str, int, int | None]             # (from, to, name, array, gradient)


@dataclass
class Block:
    """A call, or a line, as a block of the map.

    frame, line     numbers of the call, and of the line if it is one; name, detail: what is written on it
    given           it is an argument of the function around it
    takes           [(name, reference)] of the arrays that it reads;  gives: references of those that it makes
    gradients       {name: reference} of what its backward gives back for `takes`;  dy: what its backward was given
    parameters      [(name, reference, reference of its gradient)] of what it takes and nobody has computed
    blocks, edges   what is inside it: [Block], [(from, to, name, array, gradient)], by their places in `blocks`
    """

    frame: int
    name: str
    detail: str = ""
    line: int | None = None
    given: bool = False
    takes: list[tuple[str, int]] = field(default_factory=list)
    gives: list[int] = field(default_factory=list)
    gradients: dict[str, int] = field(default_factory=dict)
    dy: int | None = None
    parameters: list[tuple[str, int, int | None]] = field(default_factory=list)
    blocks: list["Block"] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """What the page holds of it: what is not empty"""
        found = vars(self) | {"blocks": [block.data() for block in self.blocks]}
        return {name: value for name, value in found.items() if value not in ("", None, [], {})}


def dataflow(recorder: Recorder, store: Store, shown: set[int], names: dict[int, str]) -> Block:
    """The Block of a whole recording. shown: numbers of the calls that the page shows; names: {id of a layer: path}"""
    return _Finder(recorder, store, shown, names).whole()


class _Finder:
    def __init__(self, recorder: Recorder, store: Store, shown: set[int], names: dict[int, str]):
        self.recorder, self.store, self.names = recorder, store, names
        self.inside: dict[Frame | None, list[Frame]] = {}
        self.backwards: dict[Frame, list[Frame]] = {}
        self.lines: dict[Frame, list[tuple[int, Line]]] = {}
        for frame in recorder.frames:
            if frame.number in shown and not frame.is_backward:
                self.inside.setdefault(frame.parent, []).append(frame)
            if frame.is_backward and frame.maker is not None:
                self.backwards.setdefault(frame.maker, []).append(frame)
        self.on_page: dict[int, int] = {}                # {number of a line: its number among those that are shown}
        for number, line in enumerate(recorder.lines):
            self.lines.setdefault(line.frame, []).append((number, line))
            if line.frame.number in shown:
                self.on_page[number] = len(self.on_page)
        named = [*(one for line in recorder.lines for one in made(line)),
                 *(one for frame in recorder.frames if not isinstance(frame.owner, Layer) for one in frame.own)]
        bases = {name.partition("[")[0] for name, _ in named}
        self.attributes = {name for name in bases if "." in name}        # {"self.q", …}: those that a line may read

    def whole(self) -> Block:
        outermost = self.inside.get(None, [])
        model = next((frame.owner for frame in outermost if self.names.get(id(frame.owner)) == ""), None)
        block = Block(outermost[0].number if outermost else 0, "")
        block.takes = [one for frame in outermost for one in self.numeric(frame.arguments)]
        self._fill(block, list(self._scope(outermost, model)), False)
        if len(block.blocks) == 1:                       # a function: what it gives is given by all
            block.gives, block.dy = block.blocks[0].gives, block.blocks[0].dy
        return block

    # What is a block -------------------------------------------------------------------------------------------------

    def _scope(self, frames: list[Frame], owner: Any) -> Iterator[tuple[Frame, bool]]:
        """(call, True if it is a block) of these calls; of those that are none also the calls inside them"""
        for frame in frames:
            is_block = self._is_block(frame, owner)
            yield frame, is_block
            if not is_block:
                yield from self._scope(self.inside.get(frame, []), owner)

    def _is_block(self, frame: Frame, owner: Any) -> bool:
        if isinstance(frame.owner, Layer):
            return frame.owner is not owner and type(frame.owner) is not Trunk
        is_op = frame.sheet.is_op and frame.written.outer is None
        return (is_op or is_theirs(frame.sheet.path)) and bool(self.backwards.get(frame))

    def _block(self, frame: Frame) -> Block:
        owner = frame.owner
        heads = f"{owner.H} heads" if isinstance(owner, MultiHeadAttention) else ""
        block = Block(frame.number, self._name(frame), heads, takes=self.numeric(frame.arguments))
        block.gives = self._arrays_of_last_line(frame)
        backward = self._backward_of(frame)
        if backward is not None:
            block.dy = next((ref for _, ref in self.floats(backward.arguments)), None)
            block.gradients = self._gradients(block.takes, backward)
        inside = list(self._scope(self.inside.get(frame, []), owner))
        self._fill(block, [(frame, False), *inside], not isinstance(owner, Layer))
        if backward is None:                             # it hands on what the backwards inside it return
            block.dy = block.blocks[-1].dy if block.blocks else None
            for name, ref in block.takes:
                if (gradient := self._handed_on(ref, inside, block.edges)) is not None:
                    block.gradients[name] = gradient
        only = block.blocks[0] if len(block.blocks) == 1 else None
        if only is not None and only.gives == block.gives and only.line is None:         # Linear is nothing but linear
            block.frame, block.blocks, block.edges = only.frame, only.blocks, only.edges
            block.takes = [one for one in only.takes if one not in [(name, ref) for name, ref, _ in only.parameters]]
            block.parameters, block.gradients = only.parameters, only.gradients
        return block

    def _name(self, frame: Frame) -> str:
        """The field's name of a layer or function, or that of its attribute: "layer norm", "query", "layer 2" """
        path = self.names.get(id(frame.owner), "")
        own, kind = path.rpartition(".")[2], type(frame.owner).__name__
        kind = kind if isinstance(frame.owner, Layer) else frame.sheet.title
        name = NAMES.get(own) or NAMES.get(kind, kind)
        if own.isdigit():
            return f"{path.split('.')[-2] if kind == 'Linear' else name} {int(own) + 1}"
        if own in NAMES or own in ("", "attention") or kind not in ("Linear", "MultiHeadAttention"):
            return name
        return own.replace("_", " ")

    def _gradients(self, takes: list[tuple[str, int]], backward: Frame) -> dict[str, int]:
        """{name of an argument: what the backward returned for it}: in their order, or by name if some have none"""
        _, last = self.lines[backward][-1]
        returned, floats = self.floats(made(last)), self.floats(takes)
        found = {own[1:]: ref for own, ref in returned}
        if len(floats) == len(returned):
            found = {name: ref for (name, _), (_, ref) in zip(floats, returned)}
        return {name: found[name] for name, ref in floats if self._same_shape(found.get(name), ref)}

    def _handed_on(self, ref: int, inside: list[tuple[Frame, bool]], edges: list[Edge]) -> int | None:
        """The gradient of an argument, of the first call inside that is no block and takes it, or of the only edge"""
        for frame, is_block in inside:
            takes, backward = self.numeric(frame.arguments), self._backward_of(frame)
            names = [name for name, one in takes if one == ref]
            if names and backward is not None and not is_block:
                return self._gradients(takes, backward).get(names[0])
        found = [gradient for start, _, _, one, gradient in edges if (start, one) == (GIVEN, ref)]
        return found[0] if len(found) == 1 else None

    # What flows from where to where ----------------------------------------------------------------------------------

    def _fill(self, block: Block, scope: list[tuple[Frame, bool]], is_function: bool) -> None:
        """Find the blocks and edges inside a block. is_function: each of its lines is a block, not only joining ones"""
        calls = [(self._end(frame), frame, self._block(frame)) for frame, is_block in scope if is_block]
        flow = _Flow(self, block.takes, [frame for frame, is_block in scope if not is_block])
        for end, frame, inner in calls:
            if not self._hands_on(frame, inner):
                flow.add(end, frame, inner)
        lines = [(number, line) for number, line in flow.lines if flow.joins(number, line, is_function)]
        if is_function and (len(lines) > MOST_LINES or len({line.first for _, line in lines}) < len(lines)):
            return                                       # a loop, whose lines run several times
        for number, line in lines:
            flow.add(number, None, self._line_block(flow, number, line, is_function))
        flow.ends.sort(key=lambda end: end[0])
        if is_function and flow.ends:                    # its arguments are blocks, too
            flow.ends[:0] = [(-1, None, self._argument_block(block, *one)) for one in self.floats(block.takes)]
            flow.given = set()
        block.blocks = [inner for _, _, inner in flow.ends]
        for to, (end, call, inner) in enumerate(flow.ends):
            begin = end if call is None else self._begin(call)
            found = [(name, ref, inner.gradients.get(name), flow.starts(ref, begin)) for name, ref in inner.takes]
            if found and call is not None and not any(starts for *_, starts in found):
                name, ref, gradient, _ = found[0]        # made within the line that calls, as in f(x[:, -1])
                found[0] = name, ref, gradient, flow.starts_of_call(call, begin, ref) or {GIVEN}
            if inner.given:
                block.edges += [(GIVEN, to, *one[:3]) for one in found]
                continue
            floats = [one for one in found if one[-1] and self.store.is_float_array(one[1])]
            for name, ref, gradient, starts in found:
                is_float = self.store.is_float_array(ref)
                if not is_float and floats and ref not in [edge[3] for edge in inner.edges if edge[0] == GIVEN]:
                    continue                             # the words that a loss is to predict
                if is_float and not starts:
                    inner.parameters.append((name, ref, gradient))
                    inner.edges = [edge for edge in inner.edges if edge[0] != GIVEN or edge[2] != name]
                else:
                    block.edges += [(start, to, name, ref, gradient) for start in sorted(starts or {GIVEN})]
        block.edges = [self._own_gradient(edge, block) for edge in block.edges]
        for inner in block.blocks:
            if inner.dy is None and inner.line is not None and inner.gives == block.gives:
                inner.dy = block.dy                      # it is what the block gives

    @staticmethod
    def _own_gradient(edge: Edge, block: Block) -> Edge:
        """An edge to a line without its gradient, which is found by its name, if that may be of another reader, too"""
        start, to, name, ref, gradient = edge
        others = [one for one in block.edges if one[1] != to and (one[0], one[3]) == (start, ref)]
        inner = block.blocks[to]
        if inner.line is None or gradient is None or all(one[4] not in (None, gradient) for one in others):
            return edge
        inner.gradients.pop(name, None)
        return start, to, name, ref, None

    @staticmethod
    def _argument_block(block: Block, name: str, ref: int) -> Block:
        gradient = block.gradients.get(name)
        return Block(block.frame, name, given=True, takes=[(name, ref)], gives=[ref], dy=gradient,
                     gradients={} if gradient is None else {name: gradient})             # fmt: skip

    def _line_block(self, flow: "_Flow", number: int, line: Line, is_function: bool) -> Block:
        frame, (name, ref) = line.frame, self.floats(made(line))[0]
        is_sum = _is_sum(line) and not is_function
        lines = frame.sheet.source[line.first - frame.sheet.first : line.last - frame.sheet.first + 1]
        source = " ".join(re.split(r"\s#\s", text)[0].strip() for text in lines)        # without comments
        takes = [(of.removeprefix("self."), taken) for of, taken in flow.reads(number, line)]
        gradients = {of: found for of, taken in takes if (found := self._gradient(frame, of, taken)) is not None}
        name = "y" if name == "returned" else name.removeprefix("self.")
        return Block(
            frame.number, "add" if is_sum else name, "" if is_sum else source, self.on_page[number],
            takes=takes, gives=[ref], gradients=gradients, dy=self._gradient(frame, name, ref),
        )  # fmt: skip

    def _gradient(self, frame: Frame | None, name: str, ref: int) -> int | None:
        """What a backward of this call, or of the one that defined it, has made in the end for a variable: dA for A"""
        while frame is not None:
            lines = [line for backward in self.backwards.get(frame, []) for _, line in self.lines.get(backward, [])]
            floats = [one for line in lines for one in self.floats(made(line)) if self._same_shape(one[1], ref)]
            found = [gradient for own, gradient in floats if own.removeprefix("self.") == f"d{name}"]
            if found:
                return found[-1]                         # once all has been added to it
            frame = frame.maker
        return None

    # Small things ----------------------------------------------------------------------------------------------------

    def numeric(self, named: Iterable[Named]) -> list[tuple[str, int]]:
        """Those that are arrays of numbers"""
        arrays = [(name, ref) for name, ref in named if isinstance(ref, int)]
        return [(name, ref) for name, ref in arrays if not self.store.arrays[ref]["dtype"].startswith("bool")]

    def floats(self, named: Iterable[Named]) -> list[tuple[str, int]]:
        """Those that are floating arrays"""
        return [(name, ref) for name, ref in self.numeric(named) if self.store.is_float_array(ref)]

    def _backward_of(self, frame: Frame) -> Frame | None:
        return next((one for one in self.backwards.get(frame, []) if self.lines.get(one)), None)

    def _same_shape(self, one: Any, other: Any) -> bool:
        arrays = self.store.arrays
        return isinstance(one, int) and isinstance(other, int) and arrays[one]["shape"] == arrays[other]["shape"]

    def _arrays_of_last_line(self, frame: Frame) -> list[int]:
        lines = self.lines.get(frame)
        return [ref for _, ref in self.numeric(made(lines[-1][1]))] if lines else []

    @staticmethod
    def _hands_on(frame: Frame, block: Block) -> bool:
        """True for a layer that does nothing here, as dropout that is off"""
        taken = {ref for _, ref in block.takes}
        return isinstance(frame.owner, Layer) and not block.blocks and bool(block.gives) and set(block.gives) <= taken

    def _begin(self, frame: Frame) -> int:
        numbers = [number for number, _ in self.lines.get(frame, [])[:1]]
        return min([*numbers, *map(self._begin, self.inside.get(frame, []))], default=len(self.recorder.lines))

    def _end(self, frame: Frame) -> int:
        numbers = [number for number, _ in self.lines.get(frame, [])[-1:]]
        return max([*numbers, *map(self._end, self.inside.get(frame, []))], default=-1)


class _Flow:
    """Where the arrays inside one block come from.

    ends    [(number of its last line, its call if it is no line, Block)] of the blocks inside
    lines   [(number, Line)] of the calls that are no blocks, in the order in which they ended
    """

    def __init__(self, finder: _Finder, given: list[tuple[str, int]], frames: list[Frame]):
        self.finder, self.given = finder, {ref for _, ref in given}
        self.ends: list[tuple[int, Frame | None, Block]] = []
        self.lines = sorted(((number, line) for frame in frames for number, line in finder.lines.get(frame, [])),
                            key=lambda one: one[0])      # fmt: skip
        self.maker: dict[int, tuple[float, Callable]] = {}       # {array: (the line that had it first, what it reads)}
        for number, line in self.lines:
            self._made_by(number, [ref for _, ref, _ in line.made], partial(self.reads, number, line))
        for frame in frames:                             # what a call is given may be made within the line that calls
            begin = finder._begin(frame)
            self._made_by(begin - 0.5, [ref for _, ref in frame.arguments], partial(self._read_by_call, frame, begin))

    def _made_by(self, number, references, reads):
        for ref in references:
            if isinstance(ref, int) and self.maker.get(ref, (number + 1,))[0] > number:
                self.maker[ref] = number, reads

    def add(self, end: int, frame: Frame | None, block: Block) -> None:
        self.ends.append((end, frame, block))

    def starts(self, ref: int, before: float) -> set[int]:
        """The places of the blocks that an array comes from, at a line's number; GIVEN for an argument"""
        giving = [place for place, (end, _, block) in enumerate(self.ends) if ref in block.gives and end < before]
        if giving:
            return {giving[-1]}
        if ref in self.given:
            return {GIVEN}
        number, reads = self.maker.get(ref, (before, None))
        if reads is None or number >= before:
            return set()
        return set().union(*(self.starts(one, number) for _, one in reads()))

    def joins(self, number: int, line: Line, is_function: bool) -> bool:
        """True for a line that makes a new array from several others; in a function, for one that makes any"""
        floats = self.finder.floats(made(line))
        if not floats:
            return False
        _, ref = floats[0]
        is_made_by_it = ref not in self.given and self.maker[ref][0] == number
        if not _is_sum(line) and (not is_made_by_it or any(ref in block.gives for _, _, block in self.ends)):
            return False                                 # x + 0 is x, and a sum all the same
        return is_function or len(set().union(*(self.starts(one, number) for _, one in self.reads(number, line)))) > 1

    def starts_of_call(self, frame: Frame, before: float, like: int) -> set[int]:
        """Where the arrays come from that the line reads which makes this call, floating or not as `like` is"""
        is_float = self.finder.store.is_float_array
        read = [ref for _, ref in self._read_by_call(frame, before) if is_float(ref) == is_float(like)]
        return set().union(*(self.starts(ref, before) for ref in read))

    def reads(self, number: float, line: Line) -> list[tuple[str, int]]:
        """[(name, reference)] of the floating arrays that a line reads, as they were before it; or else of others"""
        return self._read(line.frame.written.statements.get(line.first, ()), line.frame, number)

    def _read_by_call(self, frame: Frame, before: float) -> list[tuple[str, int]]:
        """The same of the line that makes this call"""
        caller = frame.parent
        return self._read(caller.written.statements.get(frame.line, ()), caller, before) if caller else []

    def _read(self, statements, frame, before):
        names = {name for statement in statements for name in _names_of_arrays_read(statement, self.finder.attributes)}
        found = [one for name in sorted(names) for one in self._values(name, frame, before)]
        return self.finder.floats(found) or self.finder.numeric(found)

    def _values(self, name: str, frame: Frame | None, before: int) -> list[tuple[str, Any]]:
        """[(name, reference)] of a variable, or of what a list has in it"""
        while frame is not None:
            among = self.lines if "." in name else self.finder.lines.get(frame, [])     # another method may make self.q
            lines = [line for number, line in among if number < before and line.frame.owner is frame.owner]
            known = dict([*frame.arguments, *frame.own, *(one for line in lines for one in made(line))])
            found = [(own, ref) for own, ref in known.items() if own == name or own.startswith(f"{name}[")]
            if found:
                return found
            frame = frame.maker
        return []


def made(line: Line) -> list[Named]:
    """[(name, reference)] of what a line has made"""
    return [(name, ref) for name, ref, _ in line.made]


def _is_sum(line: Line) -> bool:
    """True for z = x + y"""
    parts = next((parts for _, _, parts in line.made if parts is not None), None)
    return parts is not None and parts["op"] == "+" and len(parts["of"]) > 1 and set(parts["signs"]) == {1}


def _names_of_arrays_read(statement: ast.AST, attributes: set[str]) -> set[str]:
    """The names whose entries a statement reads: not those of which it asks only x.shape, len(x) and the like"""
    nodes, asked = own_nodes(statement), set[int]()
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in SHAPE:
            asked.add(id(node.value))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("len", "array_module"):
            asked |= {id(one) for one in node.args}
    read = [one for one in nodes if isinstance(getattr(one, "ctx", None), ast.Load) and id(one) not in asked]
    names = {one.id for one in read if isinstance(one, ast.Name)}
    return names | ({ast.unparse(one) for one in read if isinstance(one, ast.Attribute)} & attributes)
