"""The API reference as pages of the site: every public name, its signature, docstring and source. It needs pdoc.

pdoc finds out what there is and makes the pages; `docstrings.py` reads our docstrings, `module.html.jinja2` and
`index.html.jinja2` say what stands on a page, `theme.css` and `custom.css` how it looks.
"""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import mini_tf
from mini_tf import pages
from mini_tf.ops.op import Op
from mini_tf.pages.reference.docstrings import as_html

import pdoc.doc
import pdoc.render
from markupsafe import Markup

PACKAGES = [f"mini_tf.{name}" for name in mini_tf.__all__]
OF_NAMED_TUPLES = ("Create new instance of ", "Alias for field number ")         # the docstrings that Python gives them
NOTHING = inspect.Parameter.empty
LONG = 100                                               # characters of a value that is not shown


def made(packages: list[str] = PACKAGES) -> dict[str, str]:
    """{path: HTML} of the reference of these packages: `index.html`, and a page for each of them."""
    pdoc.render.configure(template_directory=Path(__file__).parent, search=False)
    pdoc.render.env.filters |= {"docstring_html": docstring_html, "first_line": first_line, "source_html": source_html}
    pdoc.render.env.globals |= {"included": pages.included}
    for module in map(import_module, packages):          # some names are loaded when asked for, and pdoc does not ask
        vars(module).update({name: getattr(module, name) for name in getattr(module, "__all__", ())})
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
    """Make functions of ops. Of a module without __all__, leave out constants, and add what it imports to offer it, by
    `from … import name as name`.
    """
    members = module.members
    if not hasattr(module.obj, "__all__"):
        for name in [name for name, member in members.items() if member.kind == "variable"]:
            del members[name]
        members |= dict.fromkeys(_imported_to_be_offered(module.obj))
    for name, member in members.items():
        found = getattr(module.obj, name)
        if isinstance(found, Op) or member is None:
            kind = pdoc.doc.Class if inspect.isclass(found) else pdoc.doc.Function
            members[name] = kind(module.modulename, name, found, (found.__module__, found.__qualname__))
    return module


def _imported_to_be_offered(module):
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    return [alias.name for node in imports for alias in node.names if alias.asname == alias.name]


def tidy(doc: pdoc.doc.Doc, homes: dict[tuple[str, str], str]) -> None:
    """Say of a class, a function, a variable and of what is in it what its file says, by public names.

    homes: {(module, name) of a class, where it is defined: the package that it belongs to}
    """
    if doc.docstring.startswith(OF_NAMED_TUPLES):
        doc.docstring = ""
    if doc.kind == "function":
        _as_written(doc)
    elif doc.kind == "variable" and len(doc.default_value_str) > LONG:
        doc.default_value_str, doc.annotation_str = "", f": {type(doc.default_value).__name__}"
    elif doc.kind == "class":
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
        _fields_as_written(doc)


class Code(str):
    """Text that stands in a signature as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def _as_written(function):
    """Its types and defaults as they stand in the file: Array and not numpy.ndarray, 1e-3 and not 0.001."""
    tree = _tree(function)
    if not isinstance(tree, ast.FunctionDef):            # of a dataclass's __init__, there is no source
        return
    arguments, code = tree.args, _code_of(function)
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
    written = {argument.arg: (code(argument.annotation), code(default))
               for argument, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True)}  # fmt: skip
    written |= {one.arg: (code(one.annotation), NOTHING) for one in (arguments.vararg, arguments.kwarg) if one}
    _write(function, written, code(tree.returns))


def _fields_as_written(cls):
    """The same for the fields of a dataclass; the comment beside a field is its docstring."""
    tree, lines, code = _tree(cls), dedent(cls.source).split("\n"), _code_of(cls)
    fields = {node.target.id: node for node in getattr(tree, "body", ()) if isinstance(node, ast.AnnAssign)}
    for member in cls.own_members:
        if member.name == "__init__" and not member.source:
            _write(member, {name: (code(node.annotation), code(node.value)) for name, node in fields.items()}, NOTHING)
        elif node := fields.get(member.name):
            member.annotation_str, member.default_value_str = f": {code(node.annotation)}", ""
            member.docstring = member.docstring or lines[node.end_lineno - 1].partition("# ")[2]


def _tree(doc):
    try:
        return ast.parse(dedent(doc.source)).body[0]
    except (SyntaxError, IndexError):
        return None


def _code_of(doc):
    """A function from a node of its syntax tree to the Code that stands there; NOTHING for None."""
    source = dedent(doc.source)
    return lambda node: NOTHING if node is None else Code(" ".join(ast.get_source_segment(source, node).split()))


def _write(function, written, returns):
    """Give the signature these types and defaults: {name: (type, default)}, each Code or NOTHING."""

    def unquoted(code):
        return code if code is NOTHING else Code(code.strip("\"'"))

    parameters = [
        parameter.replace(annotation=unquoted(written[name][0]), default=written[name][1])
        if name in written else parameter
        for name, parameter in function.signature.parameters.items()
    ]  # fmt: skip
    function.signature = function.signature.replace(parameters=parameters, return_annotation=unquoted(returns))


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
