#!/usr/bin/env python3
"""Generates the entries of the Python package that only pass arguments on: ops with a column `python` (Note [Derived
entries] in tercel/core/op.h).

    tools/make_op_entries.py ROOT OUT      # OUT: op_entries.cpp
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from op_headers import PREFIXES, Table  # noqa: E402

# The entry flag of the module that has the functions of a namespace.
PLACES = {"tercel": "kFunction", "tercel::linalg": "kLinalg", "tercel::fft": "kFft"}
# C++ parameter type: (Python's type, what the entry's function takes); parameters are passed as they are.
TYPES = {
    "const Tensor&": ("Tensor", "const Tensor&"),
    "Span<Tensor>": ("Tensor[]", "const std::vector<Tensor>&"),
    "IntSpan": ("int[]", "const DimVector&"),
    "DimVector": ("int[]", "DimVector"),
    "int64_t": ("int", "int64_t"),
    "double": ("float", "double"),
    "bool": ("bool", "bool"),
    "Scalar": ("Scalar", "Scalar"),
    "std::string_view": ("str", "std::string_view"),
    "ScalarType": ("dtype", "ScalarType"),
    "MemoryFormat": ("memory_format", "MemoryFormat"),
    "Generator&": ("Generator?", "Generator&"),
}
NOTHING = ("{}", "std::nullopt", "Tensor()")
OPTIONS = ("dtype dtype=None, layout layout=None, device device=None, bool pin_memory=False, "
           "bool requires_grad=False")


def literal(type_, default):
    """A C++ default in Python syntax."""
    if type_ == "bool":
        return default.capitalize()
    if type_ == "double":
        if not re.fullmatch(r"[-\d.e /]+", default):
            raise ValueError(f"the default '{default}' is no number")
        return repr(float(eval(default)))  # noqa: S307, at most a quotient of numbers
    if type_ == "std::string_view":
        return '""' if default == "{}" else default
    if type_ == "IntSpan":
        return re.sub(r"^\{(-?\d+)\}$", r"\1", default)
    return default


class Parameter:
    """`name`: Python's; `shown`: "int dim=-1"; `taken`: the parameter of the entry's function; `passed`: the argument."""

    def __init__(self, op, index, type_, name, default):
        self.cpp_name, self.name = name, name
        first = next((i for i, p in enumerate(op.parameters) if p[0] == "const Tensor&"), None)
        if index == first and name in ("x", "a"):
            self.name = "input"
        elif name == "b" and op.parameters[first][1] == "a":
            self.name = "other"
        if type_ == "TensorOptions":
            self.name, self.shown, self.taken, self.passed = "dtype", OPTIONS, f"FactoryOptions {name}", f"{name}.resolve()"
            return
        inner = re.fullmatch(r"(?:const )?std::optional<(.*)>&?", type_)
        python, taken = TYPES[inner[1] if inner else type_]
        self.passed = name
        if python == "int[]":
            windows = re.search(r"([123])d(_|$)", op.name)
            if windows or default or name in ("dim", "shifts"):
                python = f"int[{windows[1] if windows else 1}]"
        if inner:
            python, taken = f"{python}?", type_
        elif default and type_ in ("ScalarType", "MemoryFormat"):
            taken, self.passed = f"std::optional<{taken}>", f"{name}.value_or({default})"
            default = "{}"
        elif default == "{}" and type_ == "IntSpan":
            python, taken, self.passed = f"{python}?", "const std::optional<DimVector>&", f"span_of({name})"
        self.taken = f"{taken} {name}"
        if default is None:
            self.shown = f"{python} {self.name}"
        elif type_ == "Generator&" or (default in NOTHING and type_ != "std::string_view"):
            self.shown = f"{python} {self.name}=None"
        else:
            self.shown = f"{python} {self.name}={literal(type_, default)}"


class Entry:
    """The entry of an op; ValueError if none can be derived."""

    def __init__(self, table, op):
        self.table, self.op = table, op
        self.rule = PREFIXES[op.namespace] + op.name
        self.name = "_" + self.rule if "python_hidden" in op.columns else self.rule
        self.parameters = [Parameter(op, i, *p) for i, p in enumerate(op.parameters)]
        self.fields = table.fields.get(op.result.split("::")[-1])
        self.out = self.out_type()

    def out_type(self):
        """The parameter `out` of the entry's function, or None. An out variant may be written by hand."""
        op = self.op
        by_hand = any(o.name == op.name + "_out" and o.namespace == op.namespace and o.parameters[1:] == op.parameters
                      for o in self.table.ops)
        if "no_python_out" in op.columns or not (by_hand or any(c.startswith("out") for c in op.columns)):
            return None
        if op.result == "Tensor":
            return "const Tensor&"
        return "const std::optional<std::vector<Tensor>>&"

    def signature(self):
        shown, star = [], False
        for parameter in self.parameters:
            if not star and (parameter.name == self.op.keyword or parameter.shown == OPTIONS):
                shown.append("*")
                star = True
            shown.append(parameter.shown)
        if self.op.keyword and not star:
            raise ValueError(f"{self.op.name}() has no parameter '{self.op.keyword}'")
        if self.out:
            shown += ([] if star else ["*"]) + ["Tensor out=None" if self.out == "const Tensor&" else "Tensor[] out=None"]
        return f"{self.name}({', '.join(shown)})"

    def order(self):
        """Overloads of a name are tried in this order: a number parameter would also take a 0-dimensional tensor."""
        return self.name, [not parameter.taken.startswith("const Tensor&") for parameter in self.parameters]

    def flags(self):
        op, flags = self.op, []
        place = "kSpecial" if op.name.startswith("special_") else PLACES[op.namespace]
        if op.columns & {"python", "python_function", "python_hidden"}:
            flags.append(place)
        if "python_method" in op.columns or (op.columns >= {"python", "method"} and op.namespace == "tercel"
                                             and self.op.parameters[0][0] == "const Tensor&"):
            flags.append("kMethod")
        if "python_nn" in op.columns:
            flags.append("kNn")
        if "cheap" in op.columns:
            flags.append("kCheap")
        return " | ".join(flags)

    def definition(self):
        op, parameters = self.op, [p.taken for p in self.parameters]
        passed = ["dtype_of(dtype, out)" if self.out and "out_dtype" in op.columns and p.name == "dtype" else p.passed
                  for p in self.parameters]
        result = f"{op.namespace}::{op.name}({', '.join(passed)})"
        body = ""
        if self.fields and op.result != "ValuesAndIndices":
            names = ", ".join(f'"{field}"' for field in self.fields)
            values = ", ".join(f"result.{field}" for field in self.fields)
            body = f"const auto result = {result}; "
            result = f"Named<{len(self.fields)}>{{{{{names}}}, {{{values}}}}}"
        if self.out:
            exact = op.namespace == "tercel::linalg" or "out_exact" in op.columns
            into = "into_each" if op.result == "std::vector<Tensor>" else "into_exact" if exact else "into"
            parameters.append(f"{self.out} out")
            result = f'{into}("{self.rule}", out, {result})'
        returns = " -> Tensor" if op.result == "const Tensor&" else ""
        function = f"[]({', '.join(parameters)}){returns} {{ {body}return {result}; }}"
        return f"      entry({json.dumps(self.signature())},\n            {function}, {self.flags()}),\n"


def derived(table):
    entries = []
    for op in table.ops:
        if not any(column.startswith("python") for column in op.columns):
            continue
        try:
            entry = Entry(table, op)
            entry.definition()
            entries.append(entry)
        except (KeyError, ValueError) as error:
            raise SystemExit(f"{op.header}: no entry can be derived for {op.name}(): {error}") from error
    return sorted(entries, key=Entry.order)


def source(table):
    entries = derived(table)
    includes = "".join(f'#include "{header}"\n' for header in sorted({e.op.header for e in entries}))
    return f"""// Written by tools/make_op_entries.py.
#include "python/src/op.h"
#include "python/src/out.h"
{includes}
namespace tercel::python {{

Span<Entry> derived_ops() {{
  static const Entry table[] = {{
{"".join(e.definition() for e in entries)}  }};
  return table;
}}

}}  // namespace tercel::python
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    text = source(Table(pathlib.Path(sys.argv[1])))
    if not out.exists() or out.read_text() != text:
        out.write_text(text)


if __name__ == "__main__":
    main()
