# SPDX-License-Identifier: Apache-2.0
"""A client of the gdb remote protocol that sends what it is told to, for tests and benches of servers."""
import os
import re
import socket
import subprocess
import time

WAIT_S = 300


def hexed(text):
    return (text if isinstance(text, bytes) else text.encode()).hex()


def escaped(data):
    return re.sub(rb"[#$}*]", lambda m: b"}" + bytes([m.group()[0] ^ 0x20]), data)


def unescaped(data):
    return re.sub(rb"}(.)", lambda m: bytes([m.group(1)[0] ^ 0x20]), data, flags=re.S)


class Rsp:
    """One connection over a socket, or over the pipes of a process."""

    def __init__(self, where, noack=True):
        self.proc = where if isinstance(where, subprocess.Popen) else None
        self.sock = None
        self.buf = b""
        self.output = b""
        if not self.proc:
            self.sock = where if isinstance(where, socket.socket) else connect(where)
            self.sock.settimeout(WAIT_S)
        self.acks = True
        if noack:
            self.write(b"+")
            assert self.ask("QStartNoAckMode") == b"OK"
            self.write(b"+")
            self.acks = False

    def write(self, data):
        if self.sock:
            self.sock.sendall(data)
        else:
            self.proc.stdin.write(data)
            self.proc.stdin.flush()

    def read(self):
        data = self.sock.recv(1 << 20) if self.sock else os.read(self.proc.stdout.fileno(), 1 << 20)
        if not data:
            raise EOFError
        return data

    def send(self, payload):
        payload = payload.encode() if isinstance(payload, str) else payload
        self.write(b"$" + payload + b"#%02x" % (sum(payload) & 255))

    def reply(self):
        """The next packet; what a program printed is kept aside."""
        while True:
            start = self.buf.find(b"$")
            end = self.buf.find(b"#", start) if start >= 0 else -1
            if end < 0 or len(self.buf) < end + 3:
                self.buf += self.read()
                continue
            payload, total = self.buf[start + 1:end], self.buf[end + 1:end + 3]
            self.buf = self.buf[end + 3:]
            assert int(total, 16) == sum(payload) & 255, payload[:80]
            if self.acks:
                self.write(b"+")
            if re.fullmatch(rb"O([0-9a-f]{2})+", payload):
                self.output += bytes.fromhex(payload[1:].decode())
                continue
            return unescaped(payload)

    def ask(self, payload):
        self.send(payload)
        return self.reply()

    def pread(self, fd, count, off):
        head, _, data = self.ask(f"vFile:pread:{fd:x},{count:x},{off:x}").partition(b";")
        assert head[:1] == b"F", head
        return data if not head.startswith(b"F-1") else head

    def close(self):
        if self.sock:
            self.sock.close()
        else:
            self.proc.stdin.close()
            self.proc.wait(WAIT_S)


def connect(where):
    s = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
    s.settimeout(WAIT_S)
    s.connect(where)
    return s


class Platform:
    """A running `scry platform`; `at` is where it listens. `before`: words of a command that becomes it."""

    def __init__(self, scry, *words, env=None, cwd=None, before=()):
        self.proc = subprocess.Popen([*before, scry, "platform", *words], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, cwd=cwd)
        self.said = self.proc.stderr.readline().decode()
        where = self.said.rsplit(" ", 1)[-1].strip()
        host, _, port = where.rpartition(":")
        self.at = (host.strip("[]"), int(port)) if "--listen" in words else where

    def client(self, **how):
        return Rsp(self.at, **how)

    def stop(self):
        self.proc.terminate()
        self.proc.wait(WAIT_S)
        rest = self.proc.stderr.read().decode()
        self.proc.stderr.close()
        return rest


def wait_until(is_so, wait_s=WAIT_S):
    """For what another process does in its own time."""
    end = time.monotonic() + wait_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
