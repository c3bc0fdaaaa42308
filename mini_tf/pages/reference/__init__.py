"""The API reference as pages of the site: every public name, its signature, docstring and source. It needs pdoc.

pdoc finds the names and makes the pages; `docstrings.py` reads our docstrings, `module.html.jinja2` and
`index.html.jinja2` say what stands on a page, `theme.css` and `custom.css` how it looks.
"""

import ast
import inspect
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import mini_tf
from mini_tf import pages, types
from mini_tf.ops.op import Op
from mini_tf.pages.reference.docstrings import as_html

import pdoc.doc
import pdoc.render
from markupsafe import Markup

PACKAGES = [f"mini_tf.{name}" for name in mini_tf.__all__]
OF_NAMED_TUPLES = ("Create new instance of ", "Alias for field number ")         # the docstrings that Python gives them
LONG = 100                                               # characters of a value that is not shown


def rendered_pages(packages: list[str] = PACKAGES) -> dict[str, str]:
    """{path: HTML} of the reference of these packages: `index.html`, and a page for each of them."""
    pdoc.render.configure(template_directory=Path(__file__).parent, search=False)
    pdoc.render.env.filters |= {"docstring_html": docstring_html, "first_line": first_line, "source_html": source_html}
    pdoc.render.env.globals |= {"included": partial(pages.included, pages.HERE)}
    modules = {name: pdoc.doc.Module(import_module(name)) for name in packages}
    homes = {(cls.obj.__module__, cls.obj.__qualname__): module.modulename
             for module in map(with_our_members, modules.values()) for cls in module.classes}  # fmt: skip
    for module in modules.values():
        for member in module.members.values():
            tidy(member, homes)
    found = {"index.html": pdoc.render.html_index(modules)}
    for name, module in modules.items():
        found[name.replace(".", "/") + ".html"] = pdoc.render.html_module(module, modules)
    return found


# What pdoc does not know of mini_tf -----------------------------------------------------------------------------------


def with_our_members(module: pdoc.doc.Module) -> pdoc.doc.Module:
    """Document ops as functions. Of a module without __all__, drop constants, and add what it re-exports."""
    members = module.members
    if not hasattr(module.obj, "__all__"):
        for name in [name for name, member in members.items() if member.kind == "variable"]:
            del members[name]
        members |= dict.fromkeys(_reexported(module.obj))
    for name, member in members.items():
        found: Any = getattr(module.obj, name)
        is_op = isinstance(found, Op)
        if is_op or member is None:
            kind: Any = pdoc.doc.Class if inspect.isclass(found) else pdoc.doc.Function
            members[name] = kind(module.modulename, name, found, (found.__module__, found.__qualname__))
    return module


def _reexported(module):
    """The names that it imports by `from … import name as name`"""
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    return [alias.name for node in imports for alias in node.names if alias.asname == alias.name]


def tidy(doc: Any, homes: dict[tuple[str, str], str]) -> None:
    """Document a class, a function or a variable, and its members, as its file does, by public names.

    homes: {(module, name) of a class, where it is defined: the package that it belongs to}
    """
    if doc.docstring.startswith(OF_NAMED_TUPLES):
        doc.docstring = ""
    if isinstance(doc, pdoc.doc.Function):
        _shorten(doc)
    elif isinstance(doc, pdoc.doc.Variable) and len(doc.default_value_str) > LONG:
        doc.default_value_str, doc.annotation_str = "", f": {type(doc.default_value).__name__}"
    elif isinstance(doc, pdoc.doc.Class):
        inherited, doc.inherited_members, own = doc.inherited_members, {}, list(doc.own_members)
        for (module, name), members in inherited.items():
            if home := homes.get((module, name)):
                doc.inherited_members[home, name] = members
                for member in members:
                    member.taken_from = home, f"{name}.{member.name}"
            elif module.startswith("mini_tf."):          # a base that is not public: its methods are the class's own
                own += members
        doc.own_members = own
        doc.bases = [(homes.get((module, name), module), name, name) for module, name, _ in doc.bases]
        for member in own:
            tidy(member, homes)
        _document_fields(doc)


class Text(str):
    """Text that stands in a signature as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def _shortened(annotation: Any) -> Any:
    """A type as the source has it: Array, not numpy.ndarray[…], and names without their modules"""
    if annotation is inspect.Parameter.empty:
        return annotation
    text = inspect.formatannotation(annotation)
    for name in ("Array", "Backward", "PathLike"):
        text = text.replace(inspect.formatannotation(getattr(types, name)), name)
    return Text(re.sub(r"(?:\w+\.)+(?=[A-Za-z])", "", text))


def _shorten(function: pdoc.doc.Function) -> None:
    """Shorten the types in its signature."""
    parameters = [one.replace(annotation=_shortened(one.annotation)) for one in function.signature.parameters.values()]
    returned = _shortened(function.signature.return_annotation)
    function.signature = function.signature.replace(parameters=parameters, return_annotation=returned)


def _document_fields(cls: Any) -> None:
    """The docstring of a dataclass's field is the comment on its line."""
    tree, lines = _tree(cls), dedent(cls.source).split("\n")
    fields = {node.target.id: node for node in getattr(tree, "body", ()) if hasattr(node, "annotation")}
    for member in cls.own_members:
        if node := fields.get(member.name):
            member.annotation_str, member.default_value_str = f": {ast.unparse(node.annotation)}", ""
            member.docstring = member.docstring or lines[node.end_lineno - 1].partition("# ")[2]


def _tree(doc: pdoc.doc.Doc) -> Any:
    """The syntax tree of its source; None of what has none"""
    try:
        return ast.parse(dedent(doc.source)).body[0]
    except (SyntaxError, IndexError):
        return None


# Filters for the templates --------------------------------------------------------------------------------------------


def docstring_html(doc: pdoc.doc.Doc) -> Markup:
    """A docstring as HTML. A module's is taken as it stands: pdoc takes indented code for the text."""
    if doc.kind == "module":
        return as_html(doc.obj.__doc__ or "")
    return as_html(doc.docstring)


def first_line(module: pdoc.doc.Module) -> str:
    """The first line of its docstring, which says what it is about."""
    return " ".join((module.obj.__doc__ or "").strip().split("\n\n")[0].split())


def source_html(doc: pdoc.doc.Doc) -> Markup:
    """The source of a function, highlighted, without the docstring, which stands above it on the page."""
    lines, tree = pages.highlighted(dedent(doc.source).rstrip()), _tree(doc)
    if isinstance(tree, ast.FunctionDef) and ast.get_docstring(tree) is not None and len(tree.body) > 1:
        del lines[tree.body[0].lineno - 1 : tree.body[0].end_lineno]
    return Markup("\n".join(lines))
