"""Reads the declarations of the public headers, with the comment that documents each.

A comment documents the declarations that follow it up to the next blank line or comment, so that similar ones can share it.
A comment after a declaration (///<) documents that one, and an overload without a comment shares that of the first
overload. No compiler is needed, since the headers have a uniform style.
"""

import re

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'|[{};]|[^{};/\"']+|.", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b(?!.*\()", re.DOTALL)
FAMILY = re.compile(r"^TERCEL_(?!OP_API\()[A-Z0-9_]+\((\w+)[^;]*\)$")
HIDDEN = ("detail", "op")  # functors are described where their functions are
NOT_DECLARATION = re.compile(r"^\s*(using|typedef|friend|static_assert|extern template|concept)\b|^\s*template\s*<>")


class Declaration:
    """A function, or a family of functions: a line of a macro. `doc` is None if it is undocumented."""

    def __init__(self, kind, namespace, name, line, doc):
        self.kind, self.namespace, self.name, self.line, self.doc = kind, namespace, name, line, doc


def text_of(comments):
    """The text of comments without comment marks; documentation comments only, if there are both kinds."""
    lines = []
    comments = [c for c in comments if c.startswith("/**")] or comments
    for comment in comments:
        for line in comment.splitlines():
            line = re.sub(r"^\s*(/\*\*?|///?<?|\*/|\*(?!/))\s?|\s*\*/\s*$", "", line).strip()
            if line:
                lines.append(line)
    return " ".join(lines)


def function_name(head):
    """The name that a declaration declares as a function, or None."""
    head = re.sub(r"\bTERCEL_OP_API\([^()]*\)|\[\[.*?\]\]|\b(alignas|__attribute__|decltype|noexcept)\s*\((?:[^()]|\([^()]*\))*\)", " ", head)
    while True:  # template parameters and arguments
        shorter = re.sub(r"(?<!operator)(?<!operator<)<(?:[^<>()]|\([^()]*\))*>", " ", head)
        if shorter == head:
            break
        head = shorter
    head = re.sub(r"\brequires\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\brequires\b[^(){};]*(?=\b(?:Tensor|auto|bool|void)\b)",
                  " ", head)
    match = re.search(r"(operator\s*(?:\(\s*\)|\[\s*\]|[^\s\w(]+|\s\w+)|[A-Za-z_]\w*)\s*\(", head)
    if not match or "=" in head[: match.start()].replace("operator=", ""):
        return None
    return match.group(1)


class Reader:
    """Walks through a header; see declarations()."""

    def __init__(self):
        self.found, self.scopes = [], []  # scopes: (kind, name)
        self.before = []  # the pending comment before each scope
        self.head, self.start = "", 1  # of the current declaration
        self.comments, self.shared = [], None

    def hidden(self):
        return any(kind != "namespace" or name in HIDDEN for kind, name in self.scopes)

    def add(self, kind, name, line, doc):
        if doc is None:
            doc = next((d.doc for d in self.found if d.name == name), None)
        namespace = "::".join(n for kind, n in self.scopes if kind == "namespace")
        self.found.append(Declaration(kind, namespace, name, line, doc))

    def take_doc(self):
        if self.comments:
            self.shared = text_of(self.comments)
            self.comments = []
        return self.shared

    def finish(self):
        """The declaration in `head` has ended."""
        doc, head = self.take_doc(), self.head
        self.head = ""
        if self.hidden() or NOT_DECLARATION.search(head):
            return
        name = function_name(head)
        if name:
            self.add("function", name, self.start, doc)

    def open(self):
        """A brace: of a namespace, a type, a function's body or an initial value."""
        head = self.head
        self.before.append(text_of(self.comments) if self.comments else self.shared)
        scope = SCOPE.search(head)
        if head.count("(") > head.count(")") or re.search(r"=\s*$", head):
            self.scopes.append(("value", ""))
        elif not scope:
            self.finish()
            self.scopes.append(("body", ""))
        else:
            names = re.findall(r"[A-Za-z_]\w*", re.split(r"(?<!:):(?!:)", head[scope.end():])[0])
            names = [n for n in names if n not in ("final", "class", "struct", "TERCEL_API")]
            hiding = [n for n in names if n in HIDDEN][:1] or names or ["detail"]  # anonymous namespaces are hidden
            self.scopes.append((scope.group(1), "::".join(hiding)))
            self.take_doc()
            self.head = ""

    def close(self):
        kind, _ = self.scopes.pop() if self.scopes else ("", "")
        before = self.before.pop() if self.before else None
        if kind == "value":
            self.head += " value "
        else:
            self.comments = []
            self.head = ""
            self.shared = None if kind == "namespace" else before

    def line(self, number, text):
        """A line of code, or a part of one."""
        if self.head.strip():
            self.head += "\n" + text
            return
        macro = FAMILY.match(text.strip())
        if macro and not self.hidden():
            self.add("family", macro.group(1), number, self.take_doc())
        else:
            self.head, self.start = text, number


def declarations(text):
    """Every function and family of functions at namespace level of a header, except in namespace detail."""
    text = DIRECTIVE.sub(lambda m: "//" + re.sub(r"[^\n]", "", m.group()).replace("\n", "\n//"), text)
    reader, number = Reader(), 1
    for token in (m.group() for m in TOKEN.finditer(text)):
        if token.startswith("///<"):
            if reader.found and reader.found[-1].line == number:
                reader.found[-1].doc = text_of([token])
        elif token.startswith(("//", "/*")):
            if not reader.head.strip() and token != "//" and (token.startswith("/**") or token.startswith("// ")):
                reader.comments.append(token)
        elif token == ";":
            reader.finish()
        elif token == "{":
            reader.open()
        elif token == "}":
            reader.close()
        else:
            if token.strip() == "" and token.count("\n") > 1 and not reader.head.strip():
                reader.comments, reader.shared = [], None
            for i, part in enumerate(token.split("\n")):
                if i and not part.strip() and not reader.head.strip() and i < token.count("\n"):
                    reader.comments, reader.shared = [], None
                if part.strip():
                    reader.line(number + i, part)
        number += token.count("\n")
    return reader.found
