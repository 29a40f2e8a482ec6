#!/usr/bin/env python3
"""Checks that backward functions capture SavedTensors, which detect in-place changes, and never bare Tensors.

A backward function is an argument of record() and similar functions: a lambda or a struct whose operator() takes a
BackwardCall&. Its captures or members may have any type that contains no Tensor, as far as the source shows: through the
project's structs and aliases, lists of them, and the functions that return them. A capture whose type cannot be determined
is also an error: give it a declared type. The same rule applies to nodes that define apply().

    tools/check_backward.py [ROOT]
"""

import pathlib
import re
import sys

FOLDERS = ("tercel", "python/src", "cli")
# They check versions themselves, or contain no tensor that backward reads.
SAVED = {"SavedTensor", "SavedTensors", "PackedTensor"}
# A function passed by the caller, who is responsible for its captures.
FUNCTIONS = {"Callable", "FunctionRef"}
NO_VALUE = {"dtype", "options", "size", "dim", "numel", "device", "layout", "is_complex"}
ALLOWED_NODES = {
    "LeafNode": "the gradient is added to the leaf and not computed from it",
    "CustomNode": "its context contains the tensors that forward() passes to save()",
}
LAMBDA = re.compile(r"\](?=\s*\(\s*(?:const\s+)?BackwardCall\s*&)")
NAME = r"[A-Za-z_]\w*"
# Words that look like a type, so that `w * step` is not taken for a declaration.
TYPE = r"(?:(?:::)?(?:\w+::)*(?:[A-Z]\w*|\w+_t|bool|int|double|float|char|auto)|std::\w+)(?:<[^;(){}]*?(?:\([^()]*\)[^;(){}]*?)?>)?"
KEYWORDS = {"return", "else", "case", "new", "delete", "throw", "using", "typename", "const", "goto", "co_return", "struct"}


def without_comments(text):
    """The text with comments and the contents of literals blanked, of the same length."""
    def blank(match):
        found = match[0]
        if found[0] == "/":
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.DOTALL)


def matching(text, at, step=1):
    """The position of the bracket that closes the one at a position, or with step -1 opens it."""
    pairs = {"(": ")", "[": "]", "{": "}"} if step > 0 else {")": "(", "]": "[", "}": "{"}
    stack = []
    while 0 <= at < len(text):
        c = text[at]
        if c in pairs:
            stack.append(pairs[c])
        elif stack and c == stack[-1]:
            stack.pop()
            if not stack:
                return at
        at += step
    return len(text) - 1 if step > 0 else 0


def split_list(text):
    """Splits a list at commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "<" and re.search(r"\w$", text[:i]):
            depth += 1
        elif c == ">" and depth and text[i - 1] != "-":
            depth -= 1
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in [*parts, part.strip()] if p]


class Source:
    def __init__(self, path):
        self.path = path
        self.text = without_comments(path.read_text())
        self.structs = {}  # name: body
        self.aliases = {}  # name: type
        for match in re.finditer(rf"\b(?:struct|class)\s+(?:TERCEL_API\s+)?({NAME})\b[^;{{}}()=]*\{{", self.text):
            end = matching(self.text, match.end() - 1)
            self.structs[match[1]] = self.text[match.end():end]
        for match in re.finditer(rf"\busing\s+({NAME})\s*=\s*([^;]+);", self.text):
            self.aliases[match[1]] = match[2]

    def line(self, at):
        return self.text.count("\n", 0, at) + 1


def members(body):
    """Types and names of the data members in a struct's body; declarations with a bracket count as functions."""
    flat, at = "", 0
    while at < len(body):
        if body[at] in "{(":
            end = matching(body, at)
            # The body of a function ends a declaration; the initial value of a member does not.
            flat += ";" if body[at] == "{" and flat.rstrip().endswith((")", "const", "noexcept", "override")) else body[at] + body[end]
            at = end + 1
        else:
            flat += body[at]
            at += 1
    for declaration in flat.split(";"):
        declaration = re.sub(r"^\s*(?:public|private|protected)\s*:", "", declaration.strip()).strip()
        declaration = re.sub(r"\[\[.*?\]\]|\bmutable\b|\bconst\b|\bvolatile\b", " ", declaration).strip()
        match = re.match(rf"((?:::)?{NAME}(?:::{NAME})*\s*(?:<.*?>(?!\s*::))?)[\s&*]+({NAME}\s*(?:[=,{{\[:].*)?)$", declaration, re.DOTALL)
        if match and match[1].split()[0] not in KEYWORDS | {"static", "friend", "enum", "class", "template", "explicit"}:
            for declarator in split_list(match[2]):
                yield match[1].strip(), re.match(rf"[\s&*]*({NAME})", declarator)[1]


class Project:
    def __init__(self, root):
        self.root = root
        self.sources = [Source(path) for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
                        if path.suffix in (".h", ".cpp")]
        self.headers = [s for s in self.sources if s.path.suffix == ".h"]

    def define(self, name, source):
        """(source, kind, text) of a struct or alias, from the file itself or else from a header."""
        for where in [source, *self.headers]:
            if name in where.structs:
                return where, "struct", where.structs[name]
            if name in where.aliases:
                return where, "alias", where.aliases[name]
        return None

    def tensor_in(self, type_text, source, seen=()):
        """How a type contains a Tensor ("Batch::log_probs"), or None."""
        if re.match(rf"\s*(?:const\s+)?(?:{NAME}::)*{NAME}\s*(?:<[^()]*>)?[\s&*]*\(", type_text):
            return None  # the type of a function
        for name in re.findall(NAME, type_text):
            if name in FUNCTIONS:
                return None
            if name in SAVED or name in seen:
                continue
            if name == "Tensor":
                return "Tensor"
            found = self.define(name, source)
            if not found or name in ("Node", "Edge", "BackwardCall"):
                continue
            where, kind, text = found
            if kind == "alias":
                inner = self.tensor_in(text, where, (*seen, name))
                if inner:
                    return inner
                continue
            for member_type, member in members(text):
                if self.tensor_in(member_type, where, (*seen, name)):
                    return f"{name}::{member}"
        return None

    def result_types(self, function, source):
        """The return types of functions with that name, in the file or else in the headers."""
        pattern = re.compile(rf"^[ \t]*(?:\[\[[^\]]*\]\]\s*|TERCEL_API\s+|inline\s+|static\s+|constexpr\s+|const\s+)*((?:{NAME}::)*{NAME}(?:<[^;(){{}}]*>)?)[\s&*]+{function}\s*\(", re.MULTILINE)
        for where in [source, *self.headers]:
            types = {t for t in pattern.findall(where.text) if t.split()[0] not in KEYWORDS}
            if types:
                return types
        return set()

    def type_of_expression(self, expression, source, at):
        expression = expression.strip()
        if re.fullmatch(r"-?[\d.]+\w*|true|false|nullptr|\"[ ]*\"", expression):
            return {"int"}
        moved = re.fullmatch(r"std::(?:move|forward<[^>]*>)\s*\((.*)\)", expression, re.DOTALL)
        if moved:
            return self.type_of_expression(moved[1], source, at)
        if re.fullmatch(rf"\*?{NAME}", expression):
            return self.type_of_name(expression.lstrip("*"), source, at)
        if expression.startswith("["):
            end = matching(expression, 0)
            captures = split_list(expression[1:end])
            if any(self.check_capture(capture, source, at) for capture in captures):
                return {"Tensor"} if not any(c.startswith(("=", "&")) for c in captures) else set()
            return {"int"}
        cast = re.match(r"(?:static_cast|const_cast)<([^()]*)>\s*\(", expression)
        if cast and matching(expression, cast.end() - 1) == len(expression) - 1:
            return {cast[1]}
        member = re.fullmatch(rf"({NAME})\.({NAME})", expression)
        if member:
            return {type_text for outer in self.type_of_name(member[1], source, at)
                    for found in [self.define(outer, source)] if found and found[1] == "struct"
                    for type_text, name in members(found[2]) if name == member[2]}
        if re.search(rf"\.({'|'.join(NO_VALUE)})\s*\([^()]*\)$", expression):
            return {"int"}
        call = re.match(rf"((?:{NAME}::)*)({NAME})(?:<[^()]*>)?\s*([({{])", expression)
        if call and matching(expression, call.end() - 1) == len(expression) - 1:
            scope = call[1].rstrip(":").split("::")[-1]
            if scope in SAVED or call[2] in SAVED:
                return {"SavedTensor"}
            if call[2][0].isupper() or call[3] == "{":
                return {call[2]}
            return self.result_types(call[2], source)
        if re.search(r"[<>=!]=|&&|\|\||^!", expression):
            return {"bool"}
        return set()

    def type_of_name(self, name, source, at):
        """The type of the nearest preceding declaration; empty if there is none."""
        before = source.text[:at]
        pattern = re.compile(
            rf"(?:^|[(,;{{}}<]|\bconst\b|\bconstexpr\b)\s*({TYPE})(?:\s*[&*]+\s*|\s+)"
            rf"(?:{NAME}(?:\s*=[^;()]*)?,\s*)*{name}\s*(?=[,;={{()\[:])",
            re.MULTILINE)
        declared = list(pattern.finditer(before))
        # Handles `const auto a = f(), b = g()`, and captures of an outer lambda.
        initial = [match for match in re.finditer(rf"(?<=[\[,\s]){name}\s*=(?!=)", before)
                   if re.search(r"(?:\bauto\s[^;{}]*|[\[,]\s*)$", before[:match.start()])]
        if initial and (not declared or initial[-1].start() >= declared[-1].end() - len(name) - 3 or declared[-1][1] == "auto"):
            begin = end = initial[-1].end()
            while end < len(before) and before[end] not in ",;])}":
                end = matching(before, end) + 1 if before[end] in "([{" else end + 1
            return self.type_of_expression(before[begin:end], source, initial[-1].start())
        return {declared[-1][1]} if declared and declared[-1][1] != "auto" else set()

    def check_capture(self, capture, source, at):
        if capture in ("=", "&") or capture.startswith("&"):
            return f"captures [{capture}]: name what is captured, by value"
        if capture in ("this", "*this"):
            return None
        name, _, initial = (part.strip() for part in capture.partition("="))
        types = self.type_of_expression(initial or name, source, at)
        if not types:
            return f"captures {capture}, whose type cannot be determined: give it a declared type"
        for type_text in sorted(types):
            inner = self.tensor_in(type_text, source)
            if inner:
                return f"captures {capture}, which holds a bare Tensor ({inner}): make it a SavedTensor"
        return None

    def check(self):
        errors, count = [], 0
        for source in self.sources:
            where = source.path.relative_to(self.root)
            for match in LAMBDA.finditer(source.text):
                count += 1
                begin = matching(source.text, match.start(), -1)
                for capture in split_list(source.text[begin + 1:match.start()]):
                    error = self.check_capture(capture, source, begin)
                    if error:
                        errors.append(f"{where}:{source.line(match.start())}: a backward function {error}")
            for name, body in source.structs.items():
                is_function = re.search(r"operator\(\)\s*\(\s*(?:const\s+)?BackwardCall\s*&", body)
                is_node = re.search(rf"\bclass\s+(?:TERCEL_API\s+)?{name}\b[^;{{}}]*:\s*public\s+(?:Node|CustomNode)\b", source.text)
                if not is_function and (not is_node or name in ALLOWED_NODES):
                    continue
                count += 1
                for type_text, member in members(body):
                    inner = self.tensor_in(type_text, source)
                    if inner:
                        errors.append(f"{where}: {name}::{member} holds a bare Tensor ({inner}): make it a SavedTensor")
        return errors, count


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    errors, count = Project(root).check()
    if not count:
        errors.append("found no backward function: the tool probably no longer recognizes them")
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
