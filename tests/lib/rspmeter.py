# SPDX-License-Identifier: Apache-2.0
"""A proxy before debug servers that makes the way longer and counts what latency multiplies: the longest chain of requests each of which was sent
after the reply to the one before had come. Requests sent together count once; so does making a connection."""
import collections
import re
import socket
import threading
import time

PACKET = re.compile(rb"\$([^#$]*)#..", re.S)


class Meter:
    """Listens on `port` of loopback; connections go to `server`, `ms` milliseconds there and back. What a server says of the port of a debug server
    is changed to `port`, which then leads there."""

    def __init__(self, server, ms=0):
        self.server, self.half_s = server, ms / 2000
        self.lock = threading.Lock()
        self.deepest = self.packets = self.connections = 0
        self.next_port = None
        self.asked = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.deepest += 1
            host, port = self.server
            port, self.next_port = self.next_port or port, None
            try:
                far = socket.create_connection((host, port))
            except OSError:
                near.close()
                continue
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            depths = collections.deque()  # of the requests whose replies are still to come
            for source, to, does in ((near, far, self.ask), (far, near, self.tell)):
                late = collections.deque()
                room = threading.Condition()
                threading.Thread(target=self.read, args=(source, late, room, does if does == self.ask else None, depths), daemon=True).start()
                threading.Thread(target=self.write, args=(to, late, room, does if does == self.tell else None, depths), daemon=True).start()

    def read(self, source, late, room, does, depths):
        data, rest = b"x", b""
        while data:
            try:
                data = source.recv(1 << 20)
            except OSError:
                data = b""
            if does:
                rest = does(rest + data, depths)
            with room:
                late.append((time.monotonic() + self.half_s, data))
                room.notify()

    def write(self, to, late, room, does, depths):
        rest = b""
        while True:
            with room:
                while not late:
                    room.wait()
                due, data = late.popleft()
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if does:
                data, rest = self.changed(data), does(rest + data, depths)
            try:
                if data:
                    to.sendall(data)
                else:
                    to.shutdown(socket.SHUT_WR)
            except OSError:
                return
            if not data:
                return

    def ask(self, data, depths):
        """What a client sends: each request depends on every reply that it has seen."""
        end = 0
        for m in PACKET.finditer(data):
            end = m.end()
            with self.lock:
                self.packets += 1
                self.asked.append(m.group(1)[:60])
                depths.append(self.deepest + 1)
        return data[end:]

    def tell(self, data, depths):
        """What a server sends: replies come in the order of the requests; output of the program is none."""
        end = 0
        for m in PACKET.finditer(data):
            end = m.end()
            if re.fullmatch(rb"O([0-9a-f]{2})+", m.group(1)):
                continue
            with self.lock:
                if depths:
                    self.deepest = max(self.deepest, depths.popleft())
        return data[end:]

    def changed(self, data):
        m = re.search(rb"\$(pid:\d+;port:)(\d+);#..", data)
        if not m:
            return data
        self.next_port = int(m.group(2))
        payload = m.group(1) + b"%d;" % self.port
        return data[:m.start()] + b"$" + payload + b"#%02x" % (sum(payload) & 255) + data[m.end():]
