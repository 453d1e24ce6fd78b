# SPDX-License-Identifier: Apache-2.0
"""A server and its clients, as the tests and benches of serving use them."""
import json
import os
import socket
import subprocess
import time

WAIT_S = 300


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]
        self.kind = error["data"]["kind"]
        self.fix = error["data"].get("fix", "")


class Client:
    """One connection. `events` has the notifications that came between answers."""

    def __init__(self, path, sock=None):
        self.sock = sock or socket.socket(socket.AF_UNIX)
        while not sock:
            self.sock.settimeout(WAIT_S)
            try:
                self.sock.connect(path)
                break
            except BlockingIOError:
                # The queue of those who wait to be accepted is full.
                time.sleep(0.01)
        self.pending = b""
        self.id = 0
        self.events = []
        self.early = {}

    def post(self, method, params=None, want=None):
        if want is None:
            self.id += 1
            want = self.id
        request = {"jsonrpc": "2.0", "id": want, "method": method}
        if params is not None:
            request["params"] = params
        self.sock.sendall(json.dumps(request).encode() + b"\n")
        return want

    def tell(self, method, **params):
        self.sock.sendall(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def line(self):
        while b"\n" not in self.pending:
            more = self.sock.recv(1 << 16)
            if not more:
                raise EOFError
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def next(self):
        """The next answer, whosever it is."""
        while True:
            answer = self.line()
            if "method" not in answer:
                return answer
            self.events.append(answer)

    def take(self, want):
        while want not in self.early:
            answer = self.next()
            self.early[answer["id"]] = answer
        answer = self.early.pop(want)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def __call__(self, method, **params):
        return self.take(self.post(method, params))

    def refusal(self, method, params=None):
        try:
            self.take(self.post(method, params))
        except Refused as e:
            return e
        return None

    def event(self, good=lambda e: True):
        """The next notification that is as wanted."""
        while True:
            for i, e in enumerate(self.events):
                if good(e):
                    return self.events.pop(i)
            e = self.line()
            if "method" in e:
                self.events.append(e)
            else:
                self.early[e["id"]] = e

    def close(self):
        self.sock.close()


class Server:
    def __init__(self, scry, path, *words, env=None, limits=None):
        self.path = path
        self.log = open(path + ".log", "w+")
        self.proc = subprocess.Popen([scry, "serve", *words, "--socket", path], stderr=self.log, env=env, preexec_fn=limits)
        for _ in range(WAIT_S * 50):
            try:
                Client(path).close()
                return
            except OSError:
                time.sleep(0.02)
                if self.proc.poll() is not None:
                    break
        raise SystemExit("the server does not answer: " + open(path + ".log").read())

    def client(self):
        return Client(self.path)

    def rss(self):
        with open(f"/proc/{self.proc.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def fds(self):
        return len(os.listdir(f"/proc/{self.proc.pid}/fd"))

    def cpu(self):
        """Seconds of the processor it took."""
        with open(f"/proc/{self.proc.pid}/stat") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.proc.terminate()
        status = self.proc.wait(WAIT_S)
        self.log.close()
        return status
