# SPDX-License-Identifier: Apache-2.0
"""scry in Python: programs as databases.

    import scry
    db = scry.open("/bin/ls")
    for f in db.functions():
        print(hex(f.addr), f.name)
    with db.edit(note="entry") as e:
        e.rename(db.info().entry, "start")

scry.open() reads in this process; scry.connect() asks a server (scry serve) and has the same methods. Each operation of docs/ops.md is
one, with its parameters by name. Lists are columns and rows at once (List), other answers are dicts whose members are attributes
(Object), addresses are numbers. What scry refuses raises Error."""
import json as _json
import os as _os
import socket as _socket
import struct as _struct
import threading as _threading

from . import _ops
from ._scry import ADDRESS_KEYS as _ADDRESS_KEYS
from ._scry import Column, Error, List, Row, Session as _Session, set_loads as _set_loads, tool as _tool

__all__ = ["Column", "Database", "Edit", "Error", "List", "Object", "Row", "connect", "open"]

_dumps = _json.JSONEncoder(separators=(",", ":")).encode
_UNLIMITED = {"etag", "max_bytes", "deadline_ms"}
_PAGE = 5000


class Object(dict):
    """An answer that is no list: a dict whose members are attributes, too."""

    __slots__ = ()

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return [*super().__dir__(), *self]


def _object(pairs):
    """A JSON object; addresses become numbers."""
    for key in _ADDRESS_KEYS & pairs.keys():
        text = pairs[key]
        if isinstance(text, str) and text[:2] == "0x":
            try:
                pairs[key] = int(text, 16)
            except ValueError:
                pass
    return Object(pairs)


_set_loads(lambda text: _json.loads(text, object_hook=_object))


def _plain(value):
    """A value as the operation table takes it."""
    if isinstance(value, bool) or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -1 < value < 1 << 63 else hex(value)
    if isinstance(value, Row):
        return value.addr
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {_plain(k) if not isinstance(k, int) else hex(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "__fspath__"):
        return _os.fspath(value)
    if hasattr(value, "__index__"):
        return _plain(value.__index__())
    raise TypeError(f"{type(value).__name__} is no value that scry takes")


def _params(params):
    return {k: _plain(v) for k, v in params.items() if v is not None and v is not False and v != ()}


def _list(op, answer):
    return List(op, answer["items"], _dumps, rev=answer.get("rev", 0), total=answer.get("total"), next=answer.get("next"),
                pending=answer.get("pending", False))


def _from_text(op, text):
    """The answer of an operation from what --json prints."""
    if _ops.TABLE[op][0] == "list":
        answer = _json.loads(text)
        if "items" in answer:
            return _list(op, answer)
        return _object(answer)
    answer = _json.loads(text, object_hook=_object)
    return answer["text"] if _ops.TABLE[op][0] == "text" else answer


def _error(text, kind, fix):
    e = Error(text)
    e.kind = kind
    e.fix = fix
    return e


class _Local:
    """A target open in this process."""

    def __init__(self, session):
        self.session = session

    def ask(self, op, params):
        if _ops.TABLE[op][1] and not _UNLIMITED & params.keys():
            return self.session.list(op, _dumps(params))
        return _from_text(op, self.session.json(op, _dumps(params)))

    def bytes(self, addr, n):
        if not isinstance(addr, int):
            addr = self.ask("bytes", {"addr": addr, "len": n})["addr"]
        return self.session.bytes(addr, n)

    def close(self):
        self.session.close()


class _Remote:
    """A target of a server: JSON-RPC 2.0, an object a line. Threads take turns."""

    def __init__(self, sock, extra):
        self.sock = sock
        self.file = sock.makefile("rb")
        self.extra = extra
        self.lock = _threading.Lock()
        self.id = 0

    def exchange(self, request):
        self.sock.sendall(_dumps(request).encode() + b"\n")
        while True:
            line = self.file.readline()
            if not line:
                raise OSError
            answer = _json.loads(line)
            # What has no id tells how far something is.
            if answer.get("id") == request["id"]:
                return answer

    def call(self, method, params):
        with self.lock:
            self.id += 1
            try:
                answer = self.exchange({"jsonrpc": "2.0", "id": self.id, "method": method, "params": {**params, **self.extra}})
            except (OSError, ValueError):
                raise _error("the server went away", "io", "connect again") from None
        error = answer.get("error")
        if error:
            data = error.get("data") or {}
            raise _error(error.get("message", ""), data.get("kind", "invalid"), data.get("fix", ""))
        return answer["result"]

    def ask(self, op, params):
        shape, _columns, _cap, _target, has_pages = _ops.TABLE[op]
        if shape == "list" and has_pages and not {"limit", "cursor", "max_bytes", "etag"} & params.keys():
            return self.all_pages(op, params)
        answer = self.call(op, params)
        if shape == "list" and "items" in answer:
            return _list(op, answer)
        return answer["text"] if shape == "text" else _objects(answer)

    def all_pages(self, op, params):
        answer = self.call(op, {**params, "limit": _PAGE})
        items = answer.get("items")
        if items is None:
            return _objects(answer)
        while "next" in answer:
            more = {k: v for k, v in params.items() if k != "offset"}
            answer = self.call(op, {**more, "limit": _PAGE, "cursor": answer["next"]})
            items += answer["items"]
        return _list(op, {**answer, "items": items})

    def bytes(self, addr, n):
        return bytes.fromhex(self.call("bytes", {"addr": addr, "len": n})["hex"])

    def close(self):
        self.file.close()
        self.sock.close()


def _objects(value):
    """As _object, of an answer that was read already."""
    if isinstance(value, dict):
        return _object({k: _objects(v) for k, v in value.items()})
    return [_objects(v) for v in value] if isinstance(value, list) else value


def _statement(op):
    """One of an edit document, where an address is text."""
    op = _params(op)
    return {k: hex(v) if k in ("addr", "end", "table", "base") and isinstance(v, int) else v for k, v in op.items()}


_WITH_ANOTHER = "another change of this call was refused"


def _check_results(answer, is_dry_run):
    refused = [r for r in answer["results"] if r["status"] == "refused"]
    if refused and not is_dry_run:
        # The one that is at fault, not one that was refused with it.
        why = next((r for r in refused if r["why"] != _WITH_ANOTHER), refused[0])
        where = f"{hex(why['addr'])}: " if isinstance(why.get("addr"), int) else ""
        e = _error(f"refused: {where}{why['why']}" + (f" (and {len(refused) - 1} more)" if refused[1:] else ""), "denied", "")
        e.results = answer["results"]
        raise e


class Edit(_ops.Edits):
    """One transaction: what its methods state is made together, as one revision and one undo step, or refused together.

    results: after it was made (or tried, with dry_run), what became of each: status, before, after, why.
    rev: the revision it made."""

    def __init__(self, db, document):
        self._db = db
        self._document = document
        self._ops = []
        self.results = None
        self.rev = None

    def _add(self, op, params):
        self._ops.append(_statement({"op": op, **params}))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.commit()

    def commit(self):
        """Makes what was stated; leaving the with block does so. With dry_run it prints what would change, and changes nothing."""
        if self.results is not None:
            raise _error("the edit was made already", "invalid", "begin another one")
        if not self._ops:
            self.results = []
            return
        answer = self._db._ask("edit", {"ops": {"ops": self._ops, **self._document}})
        self.results = answer["results"]
        self.rev = answer["rev"]
        if self._document["dry_run"]:
            print(self.diff())
        _check_results(answer, self._document["dry_run"] or not self._document["atomic"])

    def diff(self):
        """What changes, as text: a line for what was and one for what is instead."""
        lines = []
        for op, r in zip(self._ops, self.results or []):
            where = hex(r["addr"]) if isinstance(r.get("addr"), int) else op.get("addr", "")
            lines.append(f"{where} {op['op']}" + ("" if r["status"] == "applied" else f": {r['status']}" + (f": {r['why']}" if r.get("why") else "")))
            if r["status"] == "applied":
                lines += [f"- {r['before']}"] * (r.get("before") is not None) + [f"+ {r['after']}"] * (r.get("after") is not None)
        return "\n".join(lines)


class Database(_ops.Operations):
    """A target: its operations are methods. To be closed, or used in a with block; threads may share it."""

    def __init__(self, backend, name):
        self._backend = backend
        self._name = name

    def __repr__(self):
        return f"<scry.Database {self._name}>"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    def close(self):
        """Lets go of the target. Lists that were taken stay."""
        self._backend.close()

    def _ask(self, op, params):
        params = _params(params)
        answer = self._backend.ask(op, params)
        # One statement that was refused is an error; of many, each is told.
        if _ops.TABLE[op][2] == 2 and op != "edit" and len(answer.get("results", ())) == 1:
            _check_results(answer, params.get("dry_run"))
        return answer

    def bytes(self, addr, n):
        """The n bytes at an address, as the program sees them in memory; what is not mapped reads as 0."""
        return self._backend.bytes(addr if type(addr) is int else _plain(addr), n)

    def address(self, name):
        """The address of a name, of NAME+0x10, of file:0x1000. Error not_found."""
        row = self._ask("resolve", {"name": (name,)})[0]
        if row.addr is None:
            raise _error(f"{name}: is not there", row.kind, "")
        return row.addr

    def edit(self, ops=None, *, note=None, dry_run=False, atomic=True, if_rev=None):
        """Many edits as one transaction: with db.edit(note="why") as e: e.rename(...); e.comment(...).

        ops: the edits as a list of dicts, {"op": "rename", "addr": A, "name": N}; made at once.
        note: why, for the journal
        dry_run: prints what would change, changes nothing
        atomic: one refusal refuses all, and raises Error
        if_rev: refused with stale when what it touches changed after that revision"""
        document = {"atomic": atomic, "dry_run": dry_run}
        if note is not None:
            document["note"] = note
        if if_rev is not None:
            document["if_rev"] = if_rev
        e = Edit(self, document)
        if ops is not None:
            e._ops = [_statement(op) for op in ops]
            e.commit()
        return e


class _Tools(_ops.Tools):
    def _ask(self, op, params):
        return _from_text(op, _tool(op, _dumps(_params(params))))


for _name in dir(_ops.Tools):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_Tools(), _name)
        __all__.append(_name)
del _name


# In a snippet (scry exec): the database it was started on, whose methods the module has, too.
_here = None


def __getattr__(name):
    if _here is not None and not name.startswith("_"):
        return getattr(_here, name)
    raise AttributeError(f"module 'scry' has no attribute '{name}'")


def open(path, *, no_store=False, threads=0, processor=None, base=None, format=None):
    """Opens a file in this process, and analyses it when nobody has yet.

    no_store: keep the analysis in memory only
    threads: analyse with so many; 0: all cores
    processor, base, format: load options, stated as by scry load; base is an address"""
    base = hex(base) if isinstance(base, int) else base
    session = _Session(_os.fspath(path), no_store=no_store, threads=threads, processor=processor, base=base, format=format)
    return Database(_Local(session), _os.fspath(path))


def connect(socket="serve", *, database=None):
    """A database of a running server (scry serve), with the methods that open() gives.

    socket: the path of its socket, or its name where scry serve makes them
    database: which of its databases: its id, path, or the last part of the path; the first one"""
    path = _os.fspath(socket)
    if "/" not in path:
        folder = _os.environ.get("XDG_RUNTIME_DIR")
        path = _os.path.join(folder, "scry", path) if folder else f"/tmp/scry-{_os.getuid()}/{path}"
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(path)
        uid = _struct.unpack("3i", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))[1]
    except OSError as e:
        sock.close()
        raise _error(f"{path}: {e.strerror}", "not_found", "scry serve FILE --socket PATH makes one") from None
    if uid != _os.geteuid():
        sock.close()
        raise _error(f"{path}: belongs to another user", "denied", "")
    return Database(_Remote(sock, {} if database is None else {"database": database}), database or path)
