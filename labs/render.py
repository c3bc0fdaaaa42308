"""Labs as pages to read without installing anything: Markdown, with what a full run printed and drew.

    python labs/render.py 04 07            run these labs in full, and write labs/pages/04_….md and so on
    python labs/render.py                  all labs: an hour or two
    python labs/render.py --text           update only the prose, of labs whose code is the same as in their page

A page has the lab's cells in their order; a test fails when lab and page differ. A picture's alt text is written into
the page by hand, and stays there when the page is rendered again.
"""

import argparse
import ast
import contextlib
import io
import os
import platform
import re
import shutil
import sys
import time
import types
from datetime import date
from pathlib import Path

import _expect
from mini_tf.errors import UserError
from mini_tf.files import replacing, write_text
from mini_tf.terminal import write_in_any_encoding

import numpy as np

LABS = Path(__file__).parent
PAGES = LABS / "pages"
FENCE = "```"
OUTPUT, END = "<!-- output -->", "<!-- end of output -->"


def cells(text):
    """(kind, number of its first line, text) for each cell of a script in percent format.

    kind is "markdown" (its text without the leading "# ") or "code".
    """
    kind, start, lines = None, 0, []
    for number, line in enumerate([*text.splitlines(), "# %%"], 1):
        if line.startswith("# %%"):
            if kind and (cell := "\n".join(lines).strip("\n")):
                yield kind, start, cell
            kind, start, lines = "markdown" if "[markdown]" in line else "code", number, []
        else:
            lines.append(re.sub("^# ?", "", line) if kind == "markdown" else line)


def code_of(text):
    return [cell for kind, _, cell in cells(text) if kind == "code"]


def run(path, say=print):
    """Run a lab's code cells in order. Returns what each printed and drew: [(text, [path of a PNG, …]), …]"""
    module = types.ModuleType("__main__")                # as if the lab were started by itself
    module.__file__ = str(path)
    sys.modules["__main__"], sys.argv = module, [str(path)]
    import _common

    outputs, text = [], path.read_text(encoding="utf-8")
    statements = ast.parse(text, str(path)).body
    code = [cell for cell in cells(text) if cell[0] == "code"]
    ends = [start for _, start, _ in code[1:]] + [len(text.splitlines()) + 1]
    for (_, start, _), end in zip(code, ends):
        seen, printed, before = len(_common.shown_figures), io.StringIO(), time.perf_counter()
        # Include the imports of earlier cells: Python compiles calls of a module's functions as in the whole file
        own = [statement for statement in statements if start < statement.lineno < end
               or statement.lineno < start and isinstance(statement, (ast.Import, ast.ImportFrom))]  # fmt: skip
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(own, []), str(path), "exec"), module.__dict__)
        outputs.append((printed.getvalue(), _common.shown_figures[seen:]))
        say(f"  line {start:>4}: {time.perf_counter() - before:6.1f} s")
    return outputs


def picture(path, folder):
    """Copy a PNG into a folder, with 128 colours, which is a third of its size. Returns its name there."""
    from PIL import Image

    with replacing(folder / path.name) as temporary:
        Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(temporary, "PNG", optimize=True)
    return path.name


def block(printed, pictures, alts=None):
    """What a code cell printed and drew, in Markdown; alts {name of a picture: its alt text}, if not its name"""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines() if not line.startswith("figure: ")]
    longest = max((len(ticks) for ticks in re.findall("`{3,}", printed)), default=2)
    fence = "`" * (longest + 1)
    parts = [f"{fence}text\n" + "\n".join(lines) + f"\n{fence}"] if lines else []
    for name in pictures:
        alt = Path(name).stem.partition("_")[2].replace("_", " ")
        parts.append(f"![{(alts or {}).get(name, alt)}]({name})")
    return "\n\n".join(parts)


def page(name, text, head, blocks):
    """The page of a lab, from its text and a block of Markdown for each code cell."""
    blocks = iter(blocks)
    parts = []
    for kind, _, cell in cells(text):
        if kind == "markdown":
            parts.append(cell)
        else:
            parts.append(f"{FENCE}python\n{cell}\n{FENCE}")
            if output := next(blocks):
                parts.append(f"{OUTPUT}\n\n{output}\n\n{END}")
            else:
                parts.append(f"{OUTPUT}{END}")
    parts.insert(1, head)
    return "\n\n".join(parts) + "\n"


def parts_of(page_text):
    """(head, [block for each code cell]) of a page."""
    head = re.search(r"^\*This page.*?\*$", page_text, re.MULTILINE | re.DOTALL)
    blocks = re.findall(f"{re.escape(OUTPUT)}(.*?){re.escape(END)}", page_text, re.DOTALL)
    return (head[0] if head else ""), [block.strip("\n") for block in blocks]


def alts_in(page_text):
    """{name of a picture: its alt text} of a page"""
    return {name: alt for alt, name in re.findall(r"!\[(.*?)\]\((\S+\.png)\)", page_text)}


def code_in(page_text):
    """The code cells in a page."""
    outside = re.sub(f"{re.escape(OUTPUT)}.*?{re.escape(END)}", OUTPUT, page_text, flags=re.DOTALL)
    return re.findall(rf"{FENCE}python\n(.*?)\n{FENCE}\n\n{re.escape(OUTPUT)}", outside, re.DOTALL)


def page_of(lab):
    return PAGES / f"{lab.stem}.md"


def render(lab):
    """Run a lab in full, and write its page and its pictures."""
    began = time.perf_counter()
    outputs = run(lab)
    seconds = time.perf_counter() - began
    folder, old = PAGES / lab.stem, page_of(lab)
    alts = alts_in(old.read_text(encoding="utf-8")) if old.exists() else {}
    if folder.exists():
        shutil.rmtree(folder)
    blocks = [block(printed, [f"{lab.stem}/{picture(path, folder)}" for path in figures], alts)
              for printed, figures in outputs]  # fmt: skip
    minutes = f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
    judged = [record for record in _expect.records if record.mark != _expect.NOT_JUDGED]
    met = sum(record.mark == _expect.MET for record in judged)
    head = (
        f"*This page is `labs/{lab.name}` with what a full run printed and drew: {date.today():%-d %B %Y}, {minutes}, "
        f"{os.cpu_count()} cores ({platform.machine()}, {platform.system()}), Python {platform.python_version()}, "
        f"NumPy {np.__version__}. {met} of its {len(judged)} expectations were met. "
        f"Made by `python labs/render.py {lab.stem.split('_')[0]}`.*"
    )
    write_text(page_of(lab), page(lab.stem, lab.read_text(encoding="utf-8"), head, blocks))
    print(f"{page_of(lab).relative_to(LABS.parent)}: {minutes}")


def renew_text(lab):
    """Update the prose of a page, keeping its output. Raises UserError if the lab's code has changed."""
    text, old = lab.read_text(encoding="utf-8"), page_of(lab).read_text(encoding="utf-8")
    if code_in(old) != code_of(text):
        raise UserError(f"the code of {lab.name} has changed since its page was rendered: run it again, without --text")
    write_text(page_of(lab), page(lab.stem, text, *parts_of(old)))


def main():
    write_in_any_encoding()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", help="their numbers, such as 01b; all of them if none is given")
    parser.add_argument("--text", action="store_true", help="update only the prose; keep the output")
    arguments = parser.parse_args()
    labs = sorted(LABS.glob("[01]*.py"))
    unknown = set(arguments.labs) - {lab.stem.split("_")[0] for lab in labs}
    if unknown:
        parser.error(f"no lab {', '.join(sorted(unknown))}")
    chosen = [lab for lab in labs if not arguments.labs or lab.stem.split("_")[0] in arguments.labs]
    try:
        for lab in chosen:
            if arguments.text:
                renew_text(lab)
            elif len(chosen) == 1:
                render(lab)
            elif code := os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, lab.stem.split("_")[0]]):
                sys.exit(code)                           # a process for each lab: they share nothing
    except UserError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
