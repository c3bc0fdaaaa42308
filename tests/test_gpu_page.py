"""labs/gpu.md shows the code that runs."""

import inspect
import re
import textwrap

from mini_tf.kernels.gpu import launching
from mini_tf.ops import softmax as op
from tests.reader import LABS


def test_the_page_shows_the_code_as_it_is():
    page = (LABS / "gpu.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+\+*)\n(.*?)```", page, re.DOTALL)
    source = textwrap.dedent(inspect.getsource(op.formula))
    for language, text in blocks:
        assert text in (launching.source() if language == "c++" else textwrap.dedent(source).replace("\n    ", "\n")), text
