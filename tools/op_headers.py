"""The table of ops: the declarations in tercel/ops's public headers, with TERCEL_OP_API's columns (tercel/core/op.h).

No compiler is needed, since the headers have a uniform style. Macros that declare a family of ops are expanded.
"""

import re

from public_headers import op_headers

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DEFINE = re.compile(r"^#define (\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
OP = re.compile(r"\b(?:TERCEL_API|TERCEL_OP_API\((?P<columns>[^()]*)\))\s+(?:inline\s+)?(?P<result>[\w:<>&,\s]+?)\s*\b(?P<name>\w+)"
                rf"\((?P<parameters>{NESTED})\)\s*(?P<end>[;{{])")
SCOPE = re.compile(r"\bnamespace\s+([\w:]+)?\s*\{|[{}]")
STRUCT = re.compile(r"\bstruct\s+(?:TERCEL_API\s+)?(\w+)\s*\{((?:\s*Tensor [\w, ]+;)+)\s*\}")
TYPE = re.compile(r"\b(struct|class|enum class)\s+(?:TERCEL_API\s+)?(\w+)\s*(?:final\s*)?(?::\s*(?:public\s+)?([\w:]+)\s*)?\{")
USING = re.compile(r"\busing ((?:\w+::)+)(\w+);")
PARAMETER = re.compile(r"^(?P<type>.*?[&\s>])(?P<name>\w+)(?:\s*=\s*(?P<default>.*))?$", re.DOTALL)
# Policies of amp.autocast for operands, with their names in python/src/autocast.h.
AUTOCAST = {"autocast_f32": "Float32", "autocast_first": "First", "autocast_lower": "Lower", "autocast_widest": "Widest"}
PYTHON = {"python", "python_function", "python_hidden", "python_method", "python_nn", "no_python_out", "cheap"}
COLUMNS = {"method", "out", "out_apart", "out_dtype", "out_exact", "layout_any", "layout_sparse", *PYTHON, *AUTOCAST}
KEYWORD = "keyword = "
# Prefixes of ops' names in Python, by namespace.
PREFIXES = {"tercel": "", "tercel::linalg": "linalg_", "tercel::fft": "fft_"}


class Op:
    """A declaration: namespace "tercel" or below, name, result type, parameters [(type, name, default or None)].

    `keyword`: the first keyword-only parameter in Python, or None."""

    def __init__(self, header, namespace, columns, result, name, parameters):
        keywords = [c.removeprefix(KEYWORD) for c in columns if c.startswith(KEYWORD)]
        self.keyword = keywords[0] if keywords else None
        self.header, self.namespace, self.columns = header, namespace, {c for c in columns if not c.startswith(KEYWORD)}
        self.result, self.name, self.parameters = result, name, parameters


def split(text):
    """Splits a list at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [" ".join(part.split()) for part in [*parts, text[start:]] if part.strip()]


def parameters_of(text):
    found = []
    for part in split(text):
        match = PARAMETER.match(part)
        if not match:
            raise ValueError(f"cannot read the parameter '{part}'")
        found.append((match["type"].strip(), match["name"], match["default"]))
    return found


def without_comments(text):
    return COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def macros_of(text):
    """{name: (parameters, body)}"""
    return {name: (names.replace(" ", "").split(","), body.replace("\\\n", "\n"))
            for name, names, body in DEFINE.findall(without_comments(text))}


def expanded(text, macros):
    """The header without comments and directives, with macros replaced by their declarations."""
    macros = macros | macros_of(text)
    text = without_comments(text)
    text = DIRECTIVE.sub("", text)
    if not macros:
        return text
    call = re.compile(r"\b(" + "|".join(map(re.escape, macros)) + rf")\(({NESTED})\)")

    def replace(match):
        names, body = macros[match[1]]
        for name, value in zip(names, split(match[2])):
            body = re.sub(rf"(?:\s*##\s*)?\b{name}\b(?:\s*##\s*)?", lambda _, value=value: value, body)
        return call.sub(replace, body)

    return call.sub(replace, text)


def namespaces(text):
    """[(position, namespace)], ascending: the namespace from each position on."""
    scopes, found = [], [(0, "")]
    for match in SCOPE.finditer(text):
        if match[0] == "}":
            if scopes:
                scopes.pop()
        else:
            scopes.append(match[1] if match[0] != "{" else None)
        found.append((match.end(), "::".join(scope for scope in scopes if scope)))
    return found


def namespace_at(spaces, position):
    return [space for begin, space in spaces if begin <= position][-1]


class Table:
    """All ops; `fields`: of structs of tensors, {name: field names}; `types`: {name: (kind, namespace, base)}; `using`:
    names of ops in another namespace, [(namespace, qualifier, name)]."""

    def __init__(self, root):
        self.ops, self.fields, self.types, self.using = [], {}, {}, []
        family = root / "tercel/ops/elementwise/declare.h"
        macros = macros_of(family.read_text()) if family.exists() else {}
        for path in op_headers(root):
            try:
                self.read(path.relative_to(root).as_posix(), expanded(path.read_text(), macros))
            except ValueError as error:
                raise SystemExit(f"{path}: {error}") from error

    def read(self, header, text):
        spaces = namespaces(text)
        for match in OP.finditer(text):
            op = Op(header, namespace_at(spaces, match.start()), split(match["columns"] or ""),
                    " ".join(match["result"].split()), match["name"], parameters_of(match["parameters"]))
            if op.columns - COLUMNS:
                raise ValueError(f"{op.name}(): unknown columns {sorted(op.columns - COLUMNS)}; known: {sorted(COLUMNS)}")
            self.ops.append(op)
        for name, names in STRUCT.findall(text):
            self.fields[name] = re.findall(r"\w+(?=[,;])", names)
        self.using += [(namespace_at(spaces, match.start()), match[1], match[2]) for match in USING.finditer(text)]
        for match in TYPE.finditer(text):
            self.types[match[2]] = (match[1], namespace_at(spaces, match.start()), match[3])
