# SPDX-License-Identifier: Apache-2.0
"""A gdb remote server of a few lines, which lies as it is told: files by path, and hooks that change what is answered."""
import hashlib
import re
import socket
import struct
import threading

def escape(data):
    return re.sub(rb"[#$}*]", lambda m: bytes((0x7d, m.group()[0] ^ 0x20)), data)


def packet(raw):
    return b"$" + raw + b"#%02x" % (sum(raw) % 256)


class Gone(Exception):
    """The connection is to be closed."""


class Fake:
    """`kind` is lldb, gdbserver or plain (no no-ack mode). `hook(server, text, raw)` may give the raw answer to a request, or None; it may raise Gone;
    `server.mine.number` is the number of its connection.
    `wire(server, bytes)` may change what is sent. Counted: bytes of files given out, connections, requests."""

    def __init__(self, files, kind="lldb", hook=None, wire=None, features=None, mtime=1700000000):
        self.files, self.kind, self.hook, self.wire, self.mtime = files, kind, hook, wire, mtime
        self.features = features or {"lldb": "PacketSize=131072;QStartNoAckMode+;qEcho+;native-signals+",
                                     "gdbserver": "PacketSize=47ff;QStartNoAckMode+;multiprocess+;vContSupported+", "plain": "PacketSize=1000;multiprocess+"}[kind]
        self.lock = threading.Lock()
        self.given = self.connections = self.requests = 0
        self.escaped = {}
        self.mine = threading.local()  # of the thread of a connection: its number, from 1, its open files, its socket
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.open_sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path):
        return f"connect://127.0.0.1:{self.port}{path}"

    def accept(self):
        while True:
            try:
                c = self.socket.accept()[0]
            except OSError:
                return
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as servers have it
            with self.lock:
                self.connections += 1
                self.open_sockets.append(c)
            threading.Thread(target=self.serve, args=(c, self.connections), daemon=True).start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for c in self.open_sockets:
            try:
                c.close()
            except OSError:
                pass

    def send(self, c, data):
        c.sendall(self.wire(self, data) if self.wire else data)

    def serve(self, c, number):
        data, noack, fds = b"", False, {}
        self.mine.number, self.mine.fds, self.mine.socket = number, fds, c
        try:
            while True:
                while b"#" not in data or len(data) < data.index(b"#") + 3:
                    more = c.recv(65536)
                    if not more:
                        return
                    data += more
                start, end = data.index(b"$"), data.index(b"#")
                raw, data = data[start + 1:end], data[end + 3:]
                if not noack:
                    self.send(c, b"+")
                with self.lock:
                    self.requests += 1
                text = raw.decode("latin-1")
                answer = self.hook(self, text, raw) if self.hook else None
                if answer is None:
                    answer = self.answer(text, fds)
                self.send(c, packet(answer) if isinstance(answer, bytes) else answer[0])
                noack = noack or (text == "QStartNoAckMode" and answer == b"OK")
        except (OSError, Gone, ValueError):
            pass
        finally:
            c.close()

    def answer(self, text, fds):
        if text == "QStartNoAckMode":
            return b"OK" if self.kind != "plain" else b""
        if text.startswith("qSupported"):
            return self.features.encode()
        if text.startswith("qEcho:"):
            return text.encode()
        if text.startswith("vFile:"):
            return self.vfile(*text[6:].partition(":")[::2], fds)
        if text.startswith("qModuleInfo:") and self.kind == "lldb":
            return self.module(bytes.fromhex(text[12:].partition(";")[0]).decode())
        return b""

    def module(self, path):
        body = self.files.get(path)
        return b"uuid:%s;file_path:%s;file_offset:0;file_size:%x;" % (build_id(body).hex().upper().encode().hex().encode(), path.encode().hex().encode(),
                                                                      len(body)) if body and build_id(body) else b"E03"

    def vfile(self, name, args, fds):
        a = args.split(",")
        if name == "open":
            path = bytes.fromhex(a[0]).decode()
            if path not in self.files:
                return b"F-1,2"
            fds[len(fds) + 5] = path
            return b"F%x" % (len(fds) + 4)
        if name in ("pread", "fstat") and int(a[0], 16) not in fds:
            return b"F-1,9"
        if name == "pread":
            return self.pread(self.files[fds[int(a[0], 16)]], int(a[1], 16), int(a[2], 16))
        if name == "fstat" and self.kind != "plain":
            return b"F40;" + escape(struct.pack(">7I3Q3I", 1, 2, 0o100755, 1, 0, 0, 0, len(self.files[fds[int(a[0], 16)]]), 4096, 1, 0, self.mtime, 0))
        if name == "close":
            return b"F0"
        if self.kind == "lldb" and name in ("size", "MD5"):
            body = self.files.get(bytes.fromhex(a[0]).decode())
            if body is None:
                return b"E05" if name == "size" else b"F,x"
            md5 = hashlib.md5(body).digest()
            return b"F%016x" % len(body) if name == "size" else b"F," + (md5[7::-1] + md5[:7:-1]).hex().encode()
        return b""

    def pread(self, body, count, off):
        cap = {"lldb": 1 << 22, "gdbserver": 17000, "plain": 0x2000}[self.kind]
        piece = body[off:off + min(count, cap)]
        with self.lock:
            self.given += len(piece)
            key = (id(body), off, len(piece))
            if key not in self.escaped:
                self.escaped[key] = escape(piece)
        return b"F%x;" % len(piece) + self.escaped[key]


def build_id(elf):
    """The build-id, read the short way: the note as bytes."""
    if not elf.startswith(b"\x7fELF"):
        return b""
    at = elf.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 0, 65536)
    return elf[at + 16:at + 36] if at >= 0 else b""
