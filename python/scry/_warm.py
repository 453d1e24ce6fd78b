# SPDX-License-Identifier: Apache-2.0
"""The warm interpreter behind `scry exec`: has a target open, and forks a process for each snippet; one is ready before its snippet comes.

What it is told and says (descriptor 3, a stream): first "ready WHAT THE KERNEL LACKS" or "error WHY"; then for each "r", which comes with
the descriptors channel, result, output and perhaps errors, a length of 4 bytes and a JSON object, it says "status N done|timeout|stopped|full" when the
snippet's process is gone, and whatever that had started. "k" ends the snippet; so does the end of the stream."""
import gc
import json
import linecache
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import scry
from scry import _ops, _scry

# What is asked of the process that holds the store, besides whatever is more than reading.
FROM_STORE = {"journal", "changes", "check", "analyze", "multi", "load", "proposals"}

FOLDER_MAX = 512 << 20  # bytes of all files of a snippet together
ENTRIES_MAX = 10000
LOOK_NS = 100_000_000  # between two looks at them


class Snippet(scry._Local):
    """Reading is done here, from the image as it was when the process began. The rest goes to who started it, and after an edit everything."""

    def __init__(self, session, channel):
        super().__init__(session)
        self.channel = channel
        self.remote = None
        self.has_edited = False

    def other(self):
        if self.remote is None:
            self.remote = scry._Remote(socket.socket(fileno=self.channel), {})
        return self.remote

    def ask(self, op, params):
        _shape, _columns, cap, target, _pages = _ops.TABLE[op]
        if cap == 1 and target and op not in FROM_STORE and not self.has_edited:
            return super().ask(op, params)
        if cap == 2:
            self.has_edited = True
            self.bytes = self.other().bytes
        return self.other().ask(op, params)

    def close(self):
        pass


def plain(value):
    """What json does not know, for a result."""
    if isinstance(value, (scry.List, scry.Row)):
        return json.loads(value.json())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "keys"):
        return {k: value[k] for k in value.keys()}
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"a result holds what JSON can say, and no {type(value).__name__}")


encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain).encode


def text_of(result):
    if isinstance(result, (scry.List, scry.Row)):
        text = result.json()
        if text.isascii():
            return text
    return encode(result)


def write(fd, text):
    data = memoryview(text.encode("ascii"))
    while data:
        data = data[os.write(fd, data):]


def failure(error, name, is_seen):
    """What was raised, told as Python tells it, without our own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    lines = "".join(traceback.format_exception(type(error), error, trace))
    if is_seen:
        sys.stderr.write(lines)
    return {"type": type(error).__name__, "message": str(error)[:4000], "traceback": lines[-16000:]}


def run(request, session, channel, fd, is_seen):
    """The snippet, and the text that is to be handed back; "" when it was written to the descriptor already."""
    name, code = request["name"], request["code"]
    db = scry._here = scry.Database(Snippet(session, channel), session.path)
    names = {"__name__": "__main__", "__file__": name, "db": db, "scry": scry, "args": request["args"], "result": None}
    sys.argv = [name, *request["args"]]
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        try:
            exec(compile(code, name, "exec"), names)
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
        result = names.get("result")
        if isinstance(result, scry.List) and result._send(fd, "R"):
            return ""
        return "R" + text_of(result)
    except BaseException as e:  # noqa: BLE001
        return "E" + json.dumps(failure(e, name, is_seen))


def receive(sock, n):
    """n bytes; None when nobody sends them any more."""
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            return None
        data += more
    return data


def rehearse(session):
    """A snippet of our own: what is touched of memory that is shared with the parent is copied now, and not on somebody's time."""
    db = scry.Database(Snippet(session, -1), session.path)
    names = {"__name__": "__main__", "db": db, "result": None}
    try:
        exec(compile("result = db.heads(count=200)\nfor row in result[:20]: row.addr", "<snippet>", "exec"), names)
        # Standard output is nobody's yet.
        names["result"]._send(1, "R")
    except (scry.Error, OSError):
        pass
    text_of([{"addr": 1, "name": "a"}])


def child(sock, session, folder, is_confined):
    """In the fork; does not return. It is made ready, and waits for the one snippet it is for."""
    text, result, why = "", -1, None
    try:
        session.still()
        try:
            if is_confined:
                _scry.lock(folder, (sock.fileno(),))
            else:
                _scry.part((sock.fileno(),))
        except scry.Error as e:
            why = str(e)
        # Unless it is here already.
        if not select.select([sock], [], [], 0)[0]:
            rehearse(session)
        _kind, fds, _flags, _addr = socket.recv_fds(sock, 1, 8)
        if len(fds) < 3:
            os._exit(0)
        channel, result, out = fds[:3]
        head = receive(sock, 4)
        body = head and receive(sock, struct.unpack("=I", head)[0])
        os.dup2(out, 1)
        os.dup2(fds[-1] if fds[3:] else out, 2)
        if why is not None:
            text = "L" + json.dumps({"message": why})
        elif body:
            text = run(json.loads(body), session, channel, result, len(fds) > 3)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as e:  # noqa: BLE001
        text = "E" + json.dumps({"type": type(e).__name__, "message": str(e)[:4000], "traceback": ""})
    try:
        write(result, text)
        # What an exit takes apart takes as long as all this: nobody has to wait for it.
        sock.send(b"d")
    finally:
        os._exit(0)


def warm_up(session):
    """What an answer needs is made when it is first asked for; forks find it made."""
    for op, params in (("heads", '{"count":20}'), ("functions", '{"limit":1}'), ("strings", '{"limit":1}'), ("imports", '{"limit":1}')):
        try:
            session.list(op, params)
        except scry.Error:
            pass
    encode([{"warm": scry._dumps({"up": 1})}])
    _scry.note()


def children():
    try:
        with open("/proc/thread-self/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]
    except OSError:
        pass
    # A kernel without that list.
    mine = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as f:
                if int(f.read().rpartition(")")[2].split()[1]) == os.getpid():
                    mine.append(int(name))
        except OSError:
            pass
    return mine


def end_rest():
    """Ends what a snippet left behind, which is ours since its parent is gone. Twice over each round: what is stopped forks no more."""
    while True:
        rest = children()
        if not rest:
            return
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in rest:
                try:
                    os.kill(pid, how)
                except ProcessLookupError:
                    pass
        for pid in rest:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass


def taken(folder, pid, limit):
    """Bytes that a process has of the disk below a folder, and whether that and the number of files are within bounds. What it has open
    and removed counts."""
    size, entries, folders = 0, 0, [folder]
    while folders and size <= limit and entries <= ENTRIES_MAX:
        try:
            for e in os.scandir(folders.pop()):
                entries += 1
                if entries > ENTRIES_MAX:
                    break
                if e.is_dir(follow_symlinks=False):
                    folders.append(e.path)
                size += e.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            pass
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            st = os.stat(f"/proc/{pid}/fd/{fd}")
            if stat.S_ISREG(st.st_mode) and not st.st_nlink:
                size += st.st_blocks * 512
    except OSError:
        pass
    return size <= limit and entries <= ENTRIES_MAX


class Spare:
    """A fork that waits for its snippet."""

    def __init__(self, warm):
        ours, theirs = socket.socketpair()
        has_numbers = warm.has_numbers and _scry.number_begin()
        self.pid = os.fork()
        if self.pid == 0:
            child(theirs, warm.session, warm.folder, warm.is_confined)
        if has_numbers:
            _scry.number_end()
        theirs.close()
        self.sock = ours

    def hand(self, fds, body):
        """What it is for. When it is gone, that shows by itself."""
        try:
            socket.send_fds(self.sock, [b"r"], fds)
            self.sock.sendall(struct.pack("=I", len(body)) + body)
        except OSError:
            pass

    def reap(self):
        """Until it is gone; its status."""
        self.sock.close()
        pid, self.pid = self.pid, None
        return os.waitpid(pid, 0)[1] if pid else 0

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        self.reap()


class Warm:
    def __init__(self, sock, session, is_confined, has_numbers):
        self.sock = sock
        self.session = session
        self.is_confined = is_confined
        self.has_numbers = has_numbers
        self.spare = None
        self.folder = tempfile.mkdtemp(prefix="scry-exec-")
        os.environ["TMPDIR"] = tempfile.tempdir = self.folder

    def wait(self, spare, until_ns):
        """Until it has ended: (status, why, whether there is still somebody to tell)."""
        pidfd = os.pidfd_open(spare.pid)
        ours, its = self.sock.fileno(), spare.sock.fileno()
        poll = select.poll()
        for fd in (pidfd, ours, its):
            poll.register(fd, select.POLLIN)
        why, is_heard, look, is_ended = "done", True, time.monotonic_ns() + LOOK_NS, False
        while not is_ended:
            # As late as is still in time.
            ms = max(0, (min(until_ns, look) - time.monotonic_ns()) // 1_000_000 + 1)
            fds = [fd for fd, _events in (poll.poll(ms) if why == "done" and is_heard else poll.poll())]
            now = time.monotonic_ns()
            if pidfd in fds:
                break
            if its in fds:
                # It says that its answer is written, and may do nothing any more.
                is_ended = spare.sock.recv(1) == b"d" and self.is_confined
                poll.unregister(its)
            elif ours in fds:
                is_heard = self.sock.recv(1) != b""
                if not is_heard:
                    poll.unregister(ours)
                why = why if why != "done" else "stopped"
            elif now >= until_ns:
                why = "timeout"
            elif now >= look:
                is_within = not self.is_confined or taken(self.folder, spare.pid, FOLDER_MAX)
                # Looking takes no more than a tenth of the time.
                look = time.monotonic_ns() + max(LOOK_NS, 9 * (time.monotonic_ns() - now))
                why = why if is_within else "full"
            if why != "done" or not is_heard or is_ended:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
        status = 0 if is_ended else spare.reap()
        # With numbers of its own nothing outlives it.
        if not self.is_confined and not self.has_numbers:
            end_rest()
        return status, why, is_heard

    def ready(self):
        """A fork that has the newest state of the target."""
        if self.session.news():
            warm_up(self.session)
            if self.spare:
                self.spare.end()
                self.spare = None
        spare, self.spare = self.spare or Spare(self), None
        return spare

    def one(self):
        """Serves a request; False when there is nobody any more."""
        kind, fds, _flags, _addr = socket.recv_fds(self.sock, 1, 8)
        if kind != b"r":
            return kind != b""
        head = receive(self.sock, 4)
        body = head and receive(self.sock, struct.unpack("=I", head)[0])
        if not body:
            return False
        request = json.loads(body)
        spare = self.ready()
        if self.is_confined:
            cpu_s = max(1, (request["until_ns"] - time.monotonic_ns()) // 1_000_000_000 + 2)
            try:
                _scry.limit(spare.pid, request["memory"], cpu_s)
            except scry.Error as e:
                write(fds[1], "L" + json.dumps({"message": str(e)}))
                os.kill(spare.pid, signal.SIGKILL)
        spare.hand(fds, body)
        for fd in fds:
            os.close(fd)
        status, why, is_heard = self.wait(spare, request["until_ns"])
        if is_heard:
            self.sock.sendall(f"status {status} {why}\n".encode())
            # Forking, and copying what both touch, takes longer than most snippets: that is done before the next one comes, and while what
            # the last one had is taken apart.
            try:
                self.spare = Spare(self)
            except OSError:
                self.spare = None
        # Emptied before the next one can begin.
        spare.reap()
        if any(os.scandir(self.folder)):
            subprocess.run(["rm", "-rf", "--", *[e.path for e in os.scandir(self.folder)]], check=False)
        return is_heard


def main():
    target, store, confined, processor, base, load_format = sys.argv[2:8]
    is_confined = confined == "confined"
    sock = socket.socket(fileno=3)
    # Orphans come to this process, where they can be ended.
    _scry.adopt()
    try:
        session = scry._Session(target, no_store=store == "no-store", processor=processor or None, base=base or None, format=load_format or None)
    except scry.Error as e:
        sock.sendall(f"error {e}\n".encode())
        return
    # Confined it starts no processes.
    has_numbers = not is_confined and _scry.number_begin() and _scry.number_end()
    warm = Warm(sock, session, is_confined, has_numbers)
    try:
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 2)
        os.close(null)
        sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        # The first look begins the watch for what others do.
        session.news()
        session.refresh()
        warm_up(session)
        # Nothing a fork looks at for garbage: its pages stay shared.
        gc.collect()
        gc.freeze()
        sock.sendall(f"ready {_scry.lock_missing()}\n".encode())
        warm.spare = Spare(warm)
        while warm.one():
            pass
    finally:
        if warm.spare:
            warm.spare.end()
        subprocess.run(["rm", "-rf", "--", warm.folder], check=False)
