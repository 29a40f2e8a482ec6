#!/usr/bin/env python3
"""Generates code from the table of ops (tools/op_headers.py): methods of Tensor, out variants, autocast policies, layouts.
Entries of the Python package: tools/make_op_entries.py.

    tools/make_ops.py ROOT OUT

OUT/tercel/core/tensor_methods.h, OUT/tercel/ops/tensor_methods.cpp, OUT/tercel/ops/out_variants.h and out_variants.cpp,
OUT/python/src/autocast_ops.inc, layout_any_ops.inc and layout_sparse_ops.inc.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from op_headers import AUTOCAST, PREFIXES, Table  # noqa: E402

TENSOR = "const Tensor&"
FACTORY = "TensorOptions"
NOTICE = "// Written by tools/make_ops.py.\n"
# Methods and results have PyTorch's names.
BEGIN, END = "// NOLINTBEGIN(readability-identifier-naming)", "// NOLINTEND(readability-identifier-naming)"


def argument(parameter):
    return parameter[1]


def declared(parameters, empty_tensor="{}"):
    """A parameter list with its defaults. The default of a Tensor is an undefined one."""
    parts = []
    for type_, name, default in parameters:
        if default is None:
            parts.append(f"{type_} {name}")
        else:
            value = empty_tensor if type_ == TENSOR and default in ("{}", "Tensor()") else default
            parts.append(f"{type_} {name} = {value}")
    return ", ".join(parts)


def defined(parameters):
    return ", ".join(f"{type_} {name}" for type_, name, _ in parameters)


def includes(headers):
    return "".join(f'#include "{header}"\n' for header in sorted(headers))


class Method:
    """The method x.name(...) of an op: the first tensor among its parameters is the object."""

    def __init__(self, op):
        at = next((i for i, p in enumerate(op.parameters) if p[0] == TENSOR), None)
        if at is None:
            raise SystemExit(f"{op.header}: {op.name}() has the column 'method' but no parameter `{TENSOR}`")
        self.op, self.parameters = op, op.parameters[:at] + op.parameters[at + 1:]
        arguments = ["static_cast<const Tensor&>(*this)" if i == at else p[1] for i, p in enumerate(op.parameters)]
        self.call = f"{op.namespace}::{op.name}({', '.join(arguments)})"
        in_place = op.result == TENSOR
        # In-place methods are const, as handles are, and return a handle that can be assigned to, as in libtorch.
        self.result = "Tensor&" if in_place else op.result
        if op.namespace != "tercel" and not in_place and op.result != "Tensor":
            self.result = f"{op.namespace.removeprefix('tercel::')}::{op.result}"
        if in_place:
            self.call = f"const_cast<Tensor&>({self.call})"

    def declaration(self):
        return f"  {self.result} {self.op.name}({declared(self.parameters, 'no_tensor()')}) const;\n"

    def definition(self):
        return (f"{self.result} TensorMethods::{self.op.name}({defined(self.parameters)}) const {{\n"
                f"  return {self.call};\n}}\n")


def forward_declarations(table, methods):
    """Types of the ops' headers that methods name."""
    used = set()
    for method in methods:
        used |= set(re.findall(r"\w+", " ".join([method.result, *(p[0] for p in method.parameters)])))
    spaces = {}
    for name in sorted(used & set(table.types)):
        kind, namespace, base = table.types[name]
        spaces.setdefault(namespace, []).append(f"{kind} {name}{f' : {base}' if kind == 'enum class' and base else ''};\n")
    text = "".join(spaces.pop("tercel", []))
    for namespace, lines in sorted(spaces.items()):
        text += f"namespace {namespace.removeprefix('tercel::')} {{\n{''.join(lines)}}}\n"
    return text


def tensor_methods(table):
    methods = [Method(op) for op in table.ops if "method" in op.columns]
    header = NOTICE + f"""// Methods of Tensor: x.name(...) is name(x, ...); Note [Tensor methods] in tensor.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/core/geometry.h"
#include "tercel/core/scalar.h"
#include "tercel/core/storage.h"
#include "tercel/util/span.h"

{BEGIN}
namespace tercel {{

class Generator;
class Tensor;
TERCEL_API Generator& default_generator();
{forward_declarations(table, methods)}
/** Part of Tensor. */
class TERCEL_API TensorMethods {{
 public:
{"".join(m.declaration() for m in methods)}
 protected:
  TensorMethods() = default;
  static const Tensor& no_tensor();
}};

}}  // namespace tercel
{END}
"""
    headers = {m.op.header for m in methods} | {"tercel/core/tensor.h"}
    source = NOTICE + f"""{includes(headers)}
namespace tercel {{

const Tensor& TensorMethods::no_tensor() {{
  static const Tensor undefined;
  return undefined;
}}
{"".join(m.definition() for m in methods)}
}}  // namespace tercel
"""
    return header, source


class OutVariant:
    """name_out(out, ...) of an op that returns a new tensor; Note [Out variants] in tercel/ops/common/out.h."""

    def __init__(self, table, op):
        self.op, self.columns = op, op.columns
        self.parameters = [p for p in op.parameters if p[0] != FACTORY]
        result = op.result.split("::")[-1]
        if result == "Tensor":
            self.outs, self.result = ["out"], TENSOR
        elif result == "ValuesAndIndices":
            self.outs, self.result = ["values", "indices"], op.result
        elif result in table.fields:
            self.outs, self.result = table.fields[result], op.result
        elif result == "std::vector<Tensor>" or op.result == "std::vector<Tensor>":
            self.outs, self.result = None, "std::vector<Tensor>"
        else:
            raise SystemExit(f"{op.header}: {op.name}() has an out column, but its result is {op.result}")
        self.rule = PREFIXES.get(op.namespace, "") + op.name
        self.exact = op.namespace == "tercel::linalg" or "out_exact" in op.columns

    def head(self, show):
        outs = ["Span<Tensor> out"] if self.outs is None else [f"{TENSOR} {name}" for name in self.outs]
        rest = show(self.parameters)
        return f"{self.result} {self.op.name}_out({', '.join([*outs, *([rest] if rest else [])])})"

    def arguments(self):
        """Factories use the dtype of `out`."""
        shown = []
        for type_, name, _ in self.op.parameters:
            if type_ == FACTORY:
                shown.append("out.dtype()")
            elif type_ == "ScalarType" and "out_dtype" in self.columns:
                shown.append(f"dtype_for_out({name}, out)")
            else:
                shown.append(name)
        return ", ".join(shown)

    def declaration(self):
        return f"TERCEL_API {self.head(declared)};\n"

    def definition(self):
        call, put = f"{self.op.namespace}::{self.op.name}({self.arguments()})", "put_linalg_out" if self.exact else "put_out"
        body = ""
        if "out_apart" in self.columns:
            body += f'  check_out_apart("{self.rule}", {{{", ".join(self.outs)}}}, {{{self.arguments()}}});\n'
        if self.outs is None:
            body += f'  return {put}("{self.rule}", out, Span<Tensor>({call}));\n'
        elif len(self.outs) == 1 or self.op.result == "ValuesAndIndices":
            body += f'  return {put}("{self.rule}", {", ".join(self.outs)}, {call});\n'
        else:
            names = [f"result{i}" for i in range(len(self.outs))]
            outs = ", ".join(self.outs)
            texts = ", {" + ", ".join(f'"{name}"' for name in self.outs) + "}" if self.exact else ""
            body += (f'  const auto [{", ".join(names)}] = {call};\n'
                     f'  {put}("{self.rule}", {{{outs}}}, {{{", ".join(names)}}}{texts});\n  return {{{outs}}};\n')
        return f"{self.head(defined)} {{\n{body}}}\n"


def by_namespace(variants, text):
    """The code of the variants, each in its op's namespace."""
    out, current = "", None
    for variant in variants:
        if variant.op.namespace != current:
            out += (f"}}  // namespace {current}\n" if current else "") + f"namespace {variant.op.namespace} {{\n"
            current = variant.op.namespace
        out += text(variant)
    return out + (f"}}  // namespace {current}\n" if current else "")


def out_variants(table):
    variants = [OutVariant(table, op) for op in table.ops if any(column.startswith("out") for column in op.columns)]
    headers = {v.op.header for v in variants} | {"tercel/ops/common/out.h"}
    made = {(v.op.namespace, v.op.name) for v in variants}
    using = "".join(f"namespace {space} {{\nusing {scope}{name}_out;\n}}\n" for space, scope, name in table.using
                    if (f"{space}::{scope.removesuffix('::')}", name) in made)
    header = NOTICE + f"""// Variants with an `out`: Note [Out variants] in common/out.h.
#pragma once

{includes(headers)}
{BEGIN}
{by_namespace(variants, OutVariant.declaration)}
{using}{END}
"""
    source = NOTICE + f"""#include "tercel/ops/out_variants.h"

{by_namespace(variants, OutVariant.definition)}"""
    return header, source


def columns_by_name(table, of):
    """{name in Python: the column among `of` that all overloads have, or None}"""
    found = {}
    for op in table.ops:
        # In-place ops and out variants return references to the caller's tensors.
        if op.result == TENSOR or op.namespace not in PREFIXES:
            continue
        columns = sorted(op.columns & of)
        first = found.setdefault(PREFIXES[op.namespace] + op.name, columns)
        if len(columns) > 1 or first != columns:
            raise SystemExit(f"{op.header}: {op.name}() has the columns {columns} among {sorted(of)}; expected one, the same "
                             f"for all overloads, but another has {first}")
    for space, scope, name in table.using:  # linalg::matmul is matmul
        if space in PREFIXES and scope == "tercel::" and found.get(name):
            found[PREFIXES[space] + name] = found[name]
    return {name: columns[0] if columns else None for name, columns in sorted(found.items())}


def autocast_ops(table):
    """{"linalg_inv", AutocastPolicy::Float32}: a line for each op with an autocast column, by its name in Python."""
    return "".join(f'{{"{name}", AutocastPolicy::{AUTOCAST[column]}}},\n'
                   for name, column in columns_by_name(table, set(AUTOCAST)).items() if column)


def layout_any_ops(table):
    """The names in Python of ops whose operands may have any layout, a line for each."""
    return "".join(f'"{name}",\n' for name, column in columns_by_name(table, {"layout_any"}).items() if column)


def layout_sparse_ops(table):
    """The names in Python of ops, in-place ones too, whose operands may be COO, a line for each."""
    names = {PREFIXES[op.namespace] + op.name for op in table.ops if "layout_sparse" in op.columns}
    return "".join(f'"{name}",\n' for name in sorted(names))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    table, out = Table(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    methods_h, methods_cpp = tensor_methods(table)
    variants_h, variants_cpp = out_variants(table)
    for name, text in {"tercel/core/tensor_methods.h": methods_h, "tercel/ops/tensor_methods.cpp": methods_cpp,
                       "tercel/ops/out_variants.h": variants_h, "tercel/ops/out_variants.cpp": variants_cpp,
                       "python/src/autocast_ops.inc": autocast_ops(table),
                       "python/src/layout_any_ops.inc": layout_any_ops(table),
                       "python/src/layout_sparse_ops.inc": layout_sparse_ops(table)}.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unchanged files keep their modification time, so that nothing is recompiled.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
