#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py TABLE.json STUB.pyi.in OPS.py STUB.pyi: the methods of the Python package, one for each operation of the table, and their types."""
import json
import keyword
import sys
import textwrap

# Written by hand in scry/__init__.py, because they are more than a call.
BY_HAND = {"edit", "bytes"}
NOT_IN_DOCUMENT = {"edit", "undo", "redo", "import", "salvage", "declare", "undeclare"}
OF_TRANSACTION = {"if_rev", "dry_run", "author", "author_kind", "note", "deadline_ms", "from", "atomic"}
CAP_EDIT = 2
TYPES = {"flag": "bool", "string": "str", "int": "int", "addr": "Address", "func": "Address", "path": "str", "json": "Any"}


def name_of(word):
    return word + "_" if keyword.iskeyword(word) else word


def type_of(p):
    if p["choices"]:
        return "Literal[" + ", ".join(f'"{c}"' for c in p["choices"].split("|")) + "]"
    # Bytes in hex may be bytes.
    return "str | bytes" if p["name"] == "bytes" else TYPES[p["type"]]


def signature(params, typed):
    """The parameters of a method as text, and the dict it makes of them."""
    params = sorted(params, key=lambda p: not (p["positional"] or p["required"]))
    positional = [p for p in params if p["positional"] or p["required"]]
    words, star = ["self"], False
    for p in positional:
        n, t = name_of(p["name"]), type_of(p)
        if p["repeated"]:
            words.append(f"*{n}" + (f": {t}" if typed else ""))
            star = True
        elif p["required"]:
            words.append(n + (f": {t}" if typed else ""))
        else:
            words.append(n + (f": {t} | None = None" if typed else "=None"))
    rest = params[len(positional):]
    if rest and not star:
        words.append("*")
    for p in rest:
        n, t = name_of(p["name"]), type_of(p)
        if p["type"] == "flag":
            words.append(n + (": bool = False" if typed else "=False"))
        elif p["repeated"]:
            words.append(n + (f": Sequence[{t}] = ()" if typed else "=()"))
        else:
            words.append(n + (f": {t} | None = None" if typed else "=None"))
    return ", ".join(words), "{" + ", ".join(f'"{p["name"]}": {name_of(p["name"])}' for p in params) + "}"


def docstring(op, params, indent):
    lines = [op["help"][0].upper() + op["help"][1:] + "."]
    if op["details"]:
        lines += ["", *textwrap.wrap(op["details"], 110)]
    if params:
        lines.append("")
        lines += [f"{name_of(p['name'])}: {p['help']}" + (f" ({p['choices'].replace('|', ', ')})" if p["choices"] else "") for p in params]
    text = "\n".join((indent + line).rstrip() for line in lines).strip()
    return f'{indent}"""{text}"""'.replace("\\", "\\\\")


def returns(op):
    return {"list": "List", "object": "Object", "text": "str"}[op["shape"]]


def method(op, params, call, result, typed):
    sig, values = signature(params, typed)
    head = f"    def {name_of(op['name'])}({sig})" + (f" -> {result}" if typed else "") + ":"
    return [head, docstring(op, params, "        "), "        ..." if typed else f"        return {call(op, values)}", ""]


def edit_params(op):
    return [p for p in op["params"] if p["name"] not in OF_TRANSACTION]


def body(ops, typed):
    own, edits, tools = [], [], []
    for op in ops:
        if op["name"] in BY_HAND:
            continue
        to = own if op["target"] else tools
        to += method(op, op["params"], lambda o, v: f'self._ask("{o["name"]}", {v})', returns(op), typed)
        if op["cap"] == CAP_EDIT and op["name"] not in NOT_IN_DOCUMENT:
            edits += method(op, edit_params(op), lambda o, v: f'self._add("{o["name"]}", {v})', "None", typed)
    lines = []
    for name, doc, methods in (("Operations", "What can be asked about a target: the operations of docs/ops.md.", own),
                               ("Tools", "The operations that take no target.", tools),
                               ("Edits", "What one transaction can hold.", edits)):
        lines += [f"class {name}:", f'    """{doc}"""', "", *methods, ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    table, stub_in, ops_out, stub_out = sys.argv[1:]
    with open(table, encoding="utf-8") as f:
        ops = json.load(f)
    facts = {op["name"]: (op["shape"], op["columns"], op["cap"], op["target"], any(p["name"] == "limit" for p in op["params"])) for op in ops}
    with open(ops_out, "w", encoding="utf-8") as f:
        f.write('"""The operations of scry; made from its table by python/generate.py."""\n\n'
                "# name: (shape, whether it comes as columns, capability, whether it is about a target, whether it has pages)\n"
                "TABLE = {\n" + "".join(f"    {name!r}: {fact!r},\n" for name, fact in facts.items()) + "}\n\n\n" + body(ops, False))
    with open(stub_in, encoding="utf-8") as f:
        stub = f.read()
    with open(stub_out, "w", encoding="utf-8") as f:
        f.write(stub.replace("# OPERATIONS\n", body(ops, True)))


main()
