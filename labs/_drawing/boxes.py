"""Draws the columns of `architecture.py`: boxes from the bottom to the top, arrows, skip connections.

All lengths are in inches.
"""

from dataclasses import dataclass, field

from mini_tf.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

COLOURS = {"words": PURPLE, "attention": ORANGE, "across": RED, "feed-forward": BLUE, "readout": GREEN, "norm": GREY,
           "plain": GREY}  # fmt: skip
WIDTH, ARROW, LINE, PAD = 2.2, 0.19, 0.155, 0.075        # of a box; between boxes; a line of text; inside a box
SIDE, FRAME, GAP = 0.2, 0.12, 0.42                       # from a box to its skip connection; frame; between columns
RADIUS = 0.085
STROKE = {"color": BLACK, "linewidth": 1, "solid_joinstyle": "round", "zorder": 2}


@dataclass
class Box:
    """A step of the model: its name, its parameters in words, the shape of what it returns"""

    kind: str                            # the key of its colour
    title: str
    lines: list[str] = field(default_factory=list)
    shape: str = ""
    layer: object = None                 # whose parameters it shows
    reads_encoder: bool = False


@dataclass
class Sum:
    """x + what these steps make of x: the skip connection of a branch"""

    branch: list


@dataclass
class Repeat:
    """Layers that are alike: the first of them, and how many there are"""

    times: int
    steps: list


@dataclass
class Column:
    """From an input, at the bottom, to an output, at the top"""

    title: str
    reads: str
    steps: list
    returns: str


def tint(color, share):
    """The colour mixed with white"""
    return tuple(1 - share * (1 - part) for part in to_rgb(color))


class Painter:
    """Draws one column around x = centre; y is how far it has come

    side: −1 for skip connections on the left of the boxes, 1 on the right
    """

    def __init__(self, axes, centre, side):
        self.axes, self.x, self.side, self.y = axes, centre, side, 0.3
        self.shape = self.new_shape = ""                 # of the array on its way up: as last written, and now
        self.reads_encoder = []                          # heights of the boxes that read Z

    def text(self, x, y, text, **options):
        self.axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": 8, "color": BLACK} | options)

    def arrow(self, length=ARROW, head=True):
        """One step up; the shape of what flows there is written beside it if it is new"""
        if self.new_shape != self.shape:
            self.text(self.x + 0.07, self.y + 0.1, self.new_shape, ha="left", fontsize=7.5, color=GREY)
            self.shape = self.new_shape
        self.line([(self.x, self.y), (self.x, self.y + length)], head)
        self.y += length

    def line(self, points, head=True):
        x, y = zip(*points)
        self.axes.plot(x, y, **STROKE)
        if head:
            (x0, y0), (x1, y1) = points[-2:]
            back = 0.05 / max(abs(x1 - x0), abs(y1 - y0))
            self.axes.annotate("", (x1, y1), (x1 - back * (x1 - x0), y1 - back * (y1 - y0)), arrowprops={
                "arrowstyle": "-|>,head_length=0.28,head_width=0.14", "color": BLACK, "shrinkA": 0, "shrinkB": 0,
                "linewidth": 1})  # fmt: skip

    def box(self, box):
        self.arrow()
        height = LINE * (1 + len(box.lines)) + 2 * PAD
        color, bottom = COLOURS[box.kind], self.y
        is_small = not box.lines and box.kind == "plain"
        width = 0.075 * len(box.title) + 0.4 if is_small else WIDTH
        face = tint(color, {"plain": 0, "norm": 0.09}.get(box.kind, 0.2))
        patch = FancyBboxPatch(
            (self.x - width / 2, bottom), width, height, boxstyle="round,pad=0,rounding_size=0.06", linewidth=1,
            facecolor=face, edgecolor=color, zorder=3)  # fmt: skip
        self.axes.add_patch(patch)
        top = bottom + height - PAD - LINE / 2
        weight = "normal" if box.kind == "norm" else "bold"
        self.text(self.x, top, box.title, fontsize=8.5, fontweight=weight, zorder=4)
        for i, line in enumerate(box.lines, 1):
            self.text(self.x, top - i * LINE, line, fontsize=7.5, zorder=4)
        if box.reads_encoder:
            self.reads_encoder.append(bottom + height / 2)
        self.y = bottom + height
        self.new_shape = box.shape

    def sum(self, sum):
        """The branch, and its input on a path of its own beside it"""
        self.arrow(0.12, head=False)
        start, far = self.y, self.x + self.side * (WIDTH / 2 + SIDE)
        self.steps(sum.branch)
        self.arrow(ARROW)
        self.y += RADIUS
        self.line([(self.x, start), (far, start), (far, self.y), (self.x + self.side * RADIUS, self.y)])
        self.axes.add_patch(Circle((self.x, self.y), RADIUS, facecolor="white", edgecolor=BLACK, zorder=3))
        cross = 0.6 * RADIUS
        self.axes.plot((self.x - cross, self.x + cross), (self.y, self.y), color=BLACK, linewidth=1, zorder=4)
        self.axes.plot((self.x, self.x), (self.y - cross, self.y + cross), color=BLACK, linewidth=1, zorder=4)
        self.y += RADIUS

    def repeat(self, repeat):
        """Layers in a frame"""
        self.arrow(0.2, head=False)
        bottom = self.y
        self.steps(repeat.steps)
        self.arrow(0.3 if isinstance(repeat.steps[-1], Box) else 0.16, head=False)
        ends = sorted((self.x + self.side * (WIDTH / 2 + SIDE + FRAME), self.x - self.side * (WIDTH / 2 + FRAME)))
        self.axes.add_patch(FancyBboxPatch(
            (ends[0], bottom), ends[1] - ends[0], self.y - bottom, boxstyle="round,pad=0,rounding_size=0.1",
            facecolor="#f6f6f4", edgecolor="0.75", linewidth=1, zorder=0))  # fmt: skip
        times = f"{repeat.times} layers" if repeat.times > 1 else "1 layer"
        away = ends[0] if self.side > 0 else ends[1]
        self.text(away + self.side * 0.08, self.y - 0.11, times, ha="left" if self.side > 0 else "right",
                  fontsize=8.5, fontweight="bold", color=GREY)  # fmt: skip

    def steps(self, steps):
        for step in steps:
            {Box: self.box, Sum: self.sum, Repeat: self.repeat}[type(step)](step)

    def column(self, column):
        self.text(self.x, 0.17, column.reads, fontsize=8.5)
        self.steps(column.steps)
        return self


def draw(columns):
    """The picture of the columns; the first one's output goes to the boxes of the second one that read it"""
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    width = WIDTH + SIDE + 2 * FRAME
    painters, left = [], 0.12
    for i, column in enumerate(columns):
        side = 1 if column.title == "Decoder" else -1
        centre = left + FRAME + WIDTH / 2 + (SIDE if side < 0 else 0)
        painters.append(Painter(axes, centre, side).column(column))
        left += width + (GAP if i + 1 < len(columns) else 0)
    for before, painter in zip(painters, painters[1:]):
        if painter.reads_encoder:
            _connect(before, painter)
    for painter, column in zip(painters, columns):
        if column.title != "Encoder":
            painter.shape = painter.new_shape            # which column.returns says
            painter.arrow(0.2)
            painter.text(painter.x, painter.y + 0.1, column.returns, fontsize=8.5)
        painter.y += 0.3
        painter.text(painter.x, painter.y, column.title, va="bottom", fontsize=9.5, fontweight="bold", linespacing=1.3)
    top = max(painter.y for painter in painters) + 0.18 * (1 + columns[0].title.count("\n")) + 0.05
    axes.set(xlim=(0, left + 0.12), ylim=(0, top))
    axes.axis("off")
    figure.set_size_inches(left + 0.12, top)
    return figure


def _connect(encoder, decoder):
    """The encoder's output, to each box of the decoder that reads it"""
    between = (encoder.x + WIDTH / 2 + FRAME + decoder.x - WIDTH / 2 - FRAME) / 2
    top = encoder.y + 0.2
    for y in decoder.reads_encoder:
        encoder.line([(encoder.x, encoder.y), (encoder.x, top), (between, top), (between, y),
                      (decoder.x - WIDTH / 2, y)])  # fmt: skip
    encoder.y = top + 0.05
    encoder.text(encoder.x + 0.07, top + 0.1, f"Z {encoder.new_shape}", ha="left")
