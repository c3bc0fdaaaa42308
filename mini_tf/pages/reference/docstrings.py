"""Docstrings as HTML. They are no Markdown: their lines and spaces mean something.

    y = γ·x̂ + β,   x̂ = (x − μ)·r        formulas and shapes, each line by itself; two or more spaces between its parts
    x (…, n)  →  y (…, n)
    gamma  (n,), a factor               names and what they are: two columns; a table has more
        indented lines                  code, or anything else whose spaces count
    Raises … and Source: …              these begin a line
    all other text                      prose, which is reflowed; code in backticks
"""

import ast
import re
from textwrap import dedent

from mini_tf.pages import highlighted

from markupsafe import Markup, escape

WIDTH = 120                                              # a line of the source that would be longer is wrapped
GAP = re.compile(r"(?<=[,;:.]) {2,}")                    # between the parts of a formula's line
FULL_STOP = re.compile(r"(?<=[\w)\].]\.) (?=[A-Z][a-z]* )")
RELATION = re.compile(r"(?:^| )(?:\+?=|[←→≥])(?: |$)")
SHAPES = re.compile(r"(?:\w+ )?\([^()]*\)(?:, (?:\w+ )?\([^()]*\))*")         # x (B, T, n), z (B, S, n)
IN_BRACKETS = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|\"[^\"]*\"|`[^`]*`")
PROSE = re.compile(r"\b(?:a|all|and|are|as|at|for|in|is|of|on|the|to)\b|\b(?!With [a-z]\b)[A-Z][a-z]{2,}\b"
                   r"|[a-z]{3,} [a-z]{2,}")              # "the", "Check", "each row": not before the = of a formula
# A name and, after two spaces or more, what it is; not a formula, whose parts end with , ; : or stand around an arrow.
COLUMNS = re.compile(r"(?!→)([^\W\d_]|\S.{0,44}?[^\s,;:.?!→]) {2,}([^\s→=#].*)")
HEADED = re.compile(r"Source: |Raises? [A-Z]|→ ")        # always begins a line
NAMED = re.compile(r"([a-z]\w*): ")                       # mask: bool, True where …


def as_html(docstring: str, indent: int = 4) -> Markup:
    """The docstring as HTML; its lines stand `indent` columns from the left in the source."""
    return Markup("\n").join(RENDERED[kind](content) for kind, content in blocks(docstring, indent))


def blocks(docstring: str, indent: int = 4) -> list[tuple[str, str | list]]:
    """[(kind, content)]. The content of a "formula" is [(part, True if it is mathematics)], of "names" [(name, text)],
    of a "table" its rows, and of the others, "code", "prose", "line", "source" and "raises", a text.
    """
    found = []
    for paragraph in docstring.strip().split("\n\n"):
        if paragraph.startswith("    "):
            code = [found.pop()[1], ""] if found and found[-1][0] == "code" else []
            found.append(("code", "\n".join([*code, dedent(paragraph)])))
            continue
        lines, kind = paragraph.split("\n"), "prose"
        while lines:
            if in_columns := _columns(lines):
                found.append(in_columns)
            else:
                text = _joined(lines, indent, is_first=not found)
                kind = {"Sour": "source", "Rais": "raises"}.get(text[:4] if HEADED.match(text) else "", kind)
                parts, text = _formula(text) if kind in ("prose", "line") else ([], text)
                found += [("formula", parts)] if parts else []
                found += [(kind, text)] if text else []
            kind = kind if kind == "source" or text.endswith(";") else "line"        # sources may have several lines
    return found


def _columns(lines):
    """Take ("names", …) or ("table", …) off the beginning of the lines; None if they do not begin with columns."""
    rows, fields, column = [], [], 0
    while lines:
        if found := COLUMNS.fullmatch(lines[0]):
            column = column or found.start(2)
        elif column and re.fullmatch(r"\w+ ", lines[0][:column]) and not HEADED.match(lines[0]):     # the longest name
            found = re.fullmatch(r"(\w+) +(.*)", lines[0])
        elif not (rows and lines[0].startswith("  ")):
            break
        line = lines.pop(0)
        if found:
            rows.append(list(found.groups()))
            fields.append(re.split(r" {2,}", line))
        else:
            rows[-1][1] += " " + line.strip()
    if len(rows) > 1 and {len(row) for row in fields} == {len(fields[0])} and len(fields[0]) > 2:
        return "table", fields
    return ("names", [tuple(row) for row in rows]) if rows else None


def _joined(lines, indent, is_first):
    """Take a line off the beginning, and with it those into which it was wrapped."""
    text = last = lines.pop(0)
    room = WIDTH - indent - 3 * is_first                 # the quotation marks
    while lines and not _is_meant(last, lines[0], room):
        last = lines.pop(0)
        text += ("   " if text[-1] in ",;" and _is_formula(text) else " ") + last.strip()
        room = WIDTH - indent
    return text


def _is_meant(line, following, room):
    """True if the line was ended on purpose, and not because it was full."""
    if following.startswith(" "):                        # it is indented: it goes on
        return False
    is_full = len(line) + 1 + len(following.split(" ")[0]) > room
    may_end = line[-1] in ".,:;?)" or _is_formula(line)
    if (_is_formula(following) or NAMED.match(following)) and may_end or HEADED.match(following):
        return True
    return not is_full and bool(
        _is_formula(line) or NAMED.match(line) or COLUMNS.fullmatch(following)
        or (following[0].isupper() and (line[-1] in ".:;)?" or line.startswith("Source: ")))
    )  # fmt: skip


def _is_formula(line):
    return any(is_math for _, is_math in _parts(line))


def _formula(line):
    """([(part, True if it is mathematics)], the sentences after it), or ([], the line)"""
    parts, sentences = _parts(line), []
    while parts and not parts[-1][1] and (sentences or parts[-1][0].endswith(".")):
        sentences.insert(0, parts.pop()[0])
    return (parts, " ".join(sentences)) if any(is_math for _, is_math in parts) else ([], line)


def _parts(line):
    """The line, cut at its wide spaces, and where a formula ends with a full stop: [(part, is it mathematics)]"""
    if _is_code(line):
        return [(line, True)]
    parts = []
    for part in [line] if NAMED.match(line) and "  →  " not in line else GAP.split(line):
        math, *words = FULL_STOP.split(part, maxsplit=1)
        parts += [(math, True), *((text, False) for text in words)] if _is_math(math) else [(part, False)]
    return parts


def _is_math(part):
    """True for y = x·W, and any relation with no prose before it; for products, shapes, and wide arrows."""
    if "  →  " in part or SHAPES.fullmatch(part):
        return True
    plain = part
    while (shorter := IN_BRACKETS.sub("", plain)) != plain:
        plain = shorter
    relation = RELATION.search(plain)
    if relation is None:
        return "·" in part and not PROSE.search(plain)
    is_long = part.endswith(".") and len(re.findall(r"\b[a-z]{3,}\b", plain)) > 8
    return not is_long and not PROSE.search(plain[: relation.start()])


def _is_code(text):
    """True for Python with a call or an assignment, "…" allowed."""
    try:
        tree = ast.parse(text.replace("…", "_"))
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, (ast.Call, ast.Assign, ast.With)) for node in ast.walk(tree))


# HTML -----------------------------------------------------------------------------------------------------------------


def _inline(text):
    """Text with `code` and the numbers of papers in it."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', html))


def _paragraph(kind):
    def html(text):
        name = NAMED.match(text)
        begin = Markup("<code>{}</code>: ").format(name[1]) if name else ""
        return Markup('<p class="{}">{}{}</p>').format(kind, begin, _inline(text[name.end() :] if name else text))

    return html


def _code(text):
    lines = highlighted(text) if _is_code(text) else [escape(line) for line in text.split("\n")]
    return Markup("<pre>{}</pre>").format(Markup("\n".join(lines)))


def _formula_html(parts):
    spans = [Markup('<span class="{}">{}</span>').format("math" if is_math else "words", _inline(part))
             for part, is_math in parts]  # fmt: skip
    return Markup('<div class="formula">{}</div>').format(Markup(" ").join(spans))


def _names(rows):
    items = [Markup("<dt>{}</dt><dd>{}</dd>").format(name, _inline(text)) for name, text in rows]
    return Markup('<dl class="names">{}</dl>').format(Markup("\n").join(items))


def _table(rows):
    head, *body = rows
    cell = Markup("<{0}{1}>{2}</{0}>")

    def row(tag, fields):
        number = [Markup(' class="number"') if re.fullmatch(r"[\d,.]+", field) else "" for field in body[0]]
        return Markup("<tr>{}</tr>").format(
            Markup("").join(cell.format(tag, *both) for both in zip(number, map(_inline, fields)))
        )

    return Markup("<table>{}</table>").format(Markup("").join([row("th", head), *(row("td", each) for each in body)]))


RENDERED = {
    "code": _code, "formula": _formula_html, "names": _names, "table": _table,
    **{kind: _paragraph(kind) for kind in ("prose", "line", "source", "raises")},
}  # fmt: skip
