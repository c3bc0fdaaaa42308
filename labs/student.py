"""The labs with blanks, for those who want to write the code themselves.

    python labs/student.py make MY_LABS                                      all labs, with blanks, into a new folder
    python labs/student.py check MY_LABS/04_word_embeddings.py               all blanks of a lab
    python labs/student.py check MY_LABS/04_word_embeddings.py::count_pair   one of them

A blank is a function whose body is left to you, with hints above it. Its check needs nothing else of the lab, takes
seconds, and says what came and what was expected, or what the gradient checker says. The solutions are the labs.
"""

import argparse
import ast
import importlib
import re
import shutil
import sys
import textwrap
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.files import replacing, write_text
from mini_tf.terminal import quoted, write_in_any_encoding

LABS = Path(__file__).parent
TO_DO = "is a blank: write it, then check it"
BESIDE = ("_common.py", "_expect.py", "student.py", "_blanks", "_drawing")      # what a lab needs in order to run


def blanks_of(path):
    """The list of Blank of a lab. Raises UserError if the file is none."""
    number = re.match(r"(\d\d[a-z]?)_", Path(path).name)
    if not number or not (LABS / "_blanks" / f"lab_{number[1]}.py").is_file():
        labs = ", ".join(lab.name for lab in sorted(LABS.glob("[01]*.py")))
        raise UserError(f"{path} is no lab with blanks, expected one of {labs}")
    return importlib.import_module(f"_blanks.lab_{number[1]}").BLANKS


def with_blanks(text, name, blanks):
    """A lab's text with the bodies of these functions left out, and hints in their place."""
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [(find(tree, blank.name), blank) for blank in blanks]
    for function, blank in sorted(functions, key=lambda one: -one[0].lineno):        # from the end
        body = function.body[1:] if ast.get_docstring(function) else function.body
        first = min([body[0].lineno, *(line.lineno for line in getattr(body[0], "decorator_list", []))])
        indent = " " * body[0].col_offset
        hints = []
        for number, hint in enumerate(blank.hints, 1):
            hints += textwrap.wrap(f"Hint {number}: {hint}", 118 - len(indent) - 2, subsequent_indent="    ")
        hints.append(f"Is it right?  python student.py check {name}::{blank.name.split('.')[0]}")
        lines[first - 1 : function.end_lineno] = [
            *(f"{indent}# {hint}" for hint in hints), f'{indent}raise NotImplementedError("{blank.name} {TO_DO}")'
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def find(tree, name):
    """The function of this name in a syntax tree; "f.backward" is the function backward inside f."""
    for part in name.split("."):
        tree = next((node for node in ast.walk(tree) if node is not tree
                     and isinstance(node, ast.FunctionDef) and node.name == part), None)  # fmt: skip
        if tree is None:
            raise UserError(f"there is no function {name} in it any more; a blank may be filled, not renamed")
    return tree


def make(folder):
    """Write all labs, with blanks, into a new or an empty folder, and beside them what they need."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already, and might hold your own work: name a new folder")
    labs = sorted(LABS.glob("[01]*.py"))
    for lab in labs:
        write_text(folder / lab.name, with_blanks(lab.read_text(encoding="utf-8"), lab.name, blanks_of(lab)))
    for name in BESIDE:
        for path in [LABS / name] if (LABS / name).is_file() else (LABS / name).glob("*.py"):
            with replacing(folder / path.relative_to(LABS)) as temporary:
                shutil.copyfile(path, temporary)
    count = sum(len(blanks_of(lab)) for lab in labs)
    print(f"{len(labs)} labs with {count} blanks are in {folder}. Write the first one, then ask:")
    print(f"  python {quoted(str(folder / 'student.py'))} check {quoted(str(folder / labs[0].name))}")


def parse(path):
    """The syntax tree of a lab: its imports and definitions only, so that it can be loaded without running it."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}") from error
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    tree.body = [node for node in tree.body if isinstance(node, kept)]
    return tree


def check(target):
    """Check the blanks of a lab, or one of them: path or path::name. Returns whether all are right."""
    path, _, wanted = target.partition("::")
    blanks = [blank for blank in blanks_of(path) if wanted in ("", blank.name, blank.name.split(".")[0])]
    if not blanks:
        raise UserError(f"{path} has no blank {wanted}, expected one of {', '.join(b.name for b in blanks_of(path))}")
    tree, functions, right = parse(path), {"__name__": Path(path).stem}, 0
    exec(compile(tree, str(path), "exec"), functions)
    for blank in blanks:
        if TO_DO in ast.unparse(find(tree, blank.name)):
            print(f"TO DO {blank.name} {TO_DO}")
            continue
        try:
            right += bool(blank.check(functions[blank.name.split(".")[0]]))
        except Exception as error:                       # whatever the learner's line raises
            print(f"FAIL  {blank.name} raised {type(error).__name__} in {place(error, path)}: {error}")
    if len(blanks) > 1:
        print(f"{right} of {len(blanks)} blanks are right")
    return right == len(blanks)


def place(error, path):
    """The last line of the learner's file that an error came through."""
    at, line = error.__traceback__, None
    while at:
        if at.tb_frame.f_code.co_filename == str(Path(path)):
            line = at.tb_lineno
        at = at.tb_next
    return f"line {line}" if line else "the check"


def main():
    write_in_any_encoding()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make", help="write the labs with blanks").add_argument("folder")
    commands.add_parser("check", help="check what you wrote").add_argument("lab", metavar="LAB.py[::NAME]")
    arguments = parser.parse_args()
    try:
        if arguments.command == "make":
            make(arguments.folder)
        elif not check(arguments.lab):
            sys.exit(1)
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
