"""The labs and exercises with blanks, for learners who write the code themselves.

    python labs/student.py make MY_LABS                                         all, with blanks, in a new folder
    python MY_LABS/student.py check MY_LABS/04_word_embeddings.py               all blanks of a lab
    python MY_LABS/student.py check MY_LABS/04_word_embeddings.py::count_pair   one of them

In a lab, a blank is the body of a function; in an exercise, `...` in a line of a backward, with hints above it. Its
check needs nothing else of the lab, takes seconds, and says what was returned and expected, or what the gradient
checker says. The solutions are the labs themselves, and labs/exercises/solutions.
"""

import argparse
import ast
import importlib
import re
import sys
import textwrap
import traceback
from pathlib import Path

from _blanks.exercises import EXERCISES
from mini_tf.errors import UserError
from mini_tf.files import write_text
from mini_tf.handout import hand_out
from mini_tf.terminal import quoted, write_in_any_encoding

LABS = Path(__file__).parent
TO_DO = "is a blank: write it, then check it"
ANSWERS = "\n\n\n# Answers\n"                             # in a solution: answers to the questions above
SETS = re.compile(r"^( *)(\w+) = .*  (# .*)", re.M)      # a line of a solution: indent, variable and comment
ASIDE = 57                                               # the comment's column


def blanks_of(path):
    """The list of Blank of a lab or an exercise. Raises UserError if the file is none."""
    stem = Path(path).stem
    number = re.match(r"(\d\d[a-z]?)_", stem)
    if stem in EXERCISES:
        return EXERCISES[stem]
    if not number or not (LABS / "_blanks" / f"lab_{number[1]}.py").is_file():
        known = [*(lab.name for lab in sorted(LABS.glob("[01]*.py"))), *(f"exercises/{name}.py" for name in EXERCISES)]
        raise UserError(f"{path} has no blanks, expected one of {', '.join(known)}")
    return importlib.import_module(f"_blanks.lab_{number[1]}").BLANKS


def with_blanks(text, path, blanks):
    """The text of a lab or of a solution with hints instead of the code of these blanks, and without answers

    path: the file that it will be, as it is named in a command
    """
    text = text.partition(ANSWERS)[0].rstrip()
    lines, tree = text.splitlines(), ast.parse(text)
    functions = [(find(tree, blank.name), blank) for blank in blanks]
    for function, blank in sorted(functions, key=lambda one: -one[0].lineno):        # from the end
        if isinstance(blank.hints, dict):
            first, left = function.lineno + 1, lines_left(lines[function.lineno : function.end_lineno], blank.hints)
        else:
            first, left = body_left(function, blank, Path(path))
        lines[first - 1 : function.end_lineno] = left
    return "\n".join(lines) + "\n"


def body_left(function, blank, path):
    """(the first line of a function's body, what remains of the body)"""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    first = min([body[0].lineno, *(line.lineno for line in getattr(body[0], "decorator_list", []))])
    indent = " " * body[0].col_offset
    script, file = (quoted(one.as_posix()) for one in (path.with_name("student.py"), path))
    check = f"Is it right?  python {script} check {file}::{blank.name.split('.')[0]}"
    raised = f'{indent}raise NotImplementedError("{blank.name} {TO_DO}")'
    return first, [*comments(blank.hints, indent), f"{indent}# {check}", raised]


def lines_left(body, hints):
    """What remains of a function's lines. A paragraph (up to an empty line) that sets some of these variables becomes
    `variable = ...` for each of them, below its hints, and its return.
    """
    left = []
    for paragraph in "\n".join(body).split("\n\n"):
        blanks = [found.groups() for found in SETS.finditer(paragraph) if found[2] in hints]
        asked = ["\n".join([*comments(hints[name], indent), f"{indent}{name} = ...".ljust(ASIDE) + shape])
                 for indent, name, shape in blanks]              # fmt: skip
        returned = re.findall(r"\n *return .*", paragraph)
        left.append("\n\n".join(asked) + "".join(returned) if blanks else paragraph)
    return "\n\n".join(left).splitlines()


def comments(hints, indent):
    """Hints as comments, each a numbered paragraph of at most 118 columns"""
    lines = [line for number, hint in enumerate(hints, 1) for line in f"Hint {number}: {hint}".splitlines()]
    wrapped = [part for line in lines for part in textwrap.wrap(line, 116 - len(indent), subsequent_indent="    ")]
    return [f"{indent}# {line}" for line in wrapped]


def find(tree, name):
    """The function of this name in a syntax tree; "f.backward" is the function backward inside f."""
    for part in name.split("."):
        tree = next((node for node in ast.walk(tree) if node is not tree
                     and isinstance(node, ast.FunctionDef) and node.name == part), None)  # fmt: skip
        if tree is None:
            raise UserError(f"there is no function {name} in it any more; a blank may be filled, not renamed")
    return tree


def make(folder, place=None):
    """Put the labs and exercises into a new or an empty folder, with blanks. Returns the two lists of their files.

    place: as `hand_out` takes it
    """
    place = Path(folder if place is None else place)
    hand_out(folder, place)
    labs = sorted(Path(folder).glob("[01]*.py"))
    solutions = sorted(Path(folder).glob("exercises/solutions/*.py"))
    sources = {lab: lab for lab in labs} | {one.parent.parent / one.name: one for one in solutions}
    for path, source in sources.items():
        named = place / path.relative_to(folder)
        write_text(path, with_blanks(source.read_text(encoding="utf-8"), named, blanks_of(path)))
    return labs, solutions


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
    """Check the blanks of a lab or an exercise, or one of them: path or path::name. Returns whether all are right."""
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
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(path)]
    return f"line {lines[-1]}" if lines else "the check"


def main():
    write_in_any_encoding()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make", help="write the labs and exercises with blanks").add_argument("folder")
    commands.add_parser("check", help="check what you wrote").add_argument("lab", metavar="LAB.py[::NAME]")
    arguments = parser.parse_args()
    try:
        if arguments.command == "make":
            labs, exercises = make(arguments.folder)
            print(f"{len(labs)} labs and {len(exercises)} exercises are in {arguments.folder}. Fill the first lab's "
                  "blanks, then ask:")                   # fmt: skip
            print(f"  python {quoted(str(Path(arguments.folder) / 'student.py'))} check {quoted(str(labs[0]))}")
        elif not check(arguments.lab):
            sys.exit(1)
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
