# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal that is recorded: what it writes, and what is typed, with times, as asciicast version 2. With $SCRY_RECORD, a folder, the
recordings are kept there (`asciinema play FILE`)."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

WAIT_S = 120
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    def __init__(self, name, words, env, cwd=None, columns=200, lines=50):
        self.name, self.events, self.raw, self.begin = name, [], "", time.monotonic()
        self.head = {"version": 2, "width": columns, "height": lines, "command": " ".join(words)}
        self.pid, self.fd = pty.fork()
        if not self.pid:
            try:
                if cwd:
                    os.chdir(cwd)
                os.execvpe(words[0], words, env)
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def note(self, kind, text):
        self.events.append((round(time.monotonic() - self.begin, 6), kind, text))

    def read(self, wait_s):
        """What came within that time; None at the end."""
        if not select.select([self.fd], [], [], wait_s)[0]:
            return ""
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        if not data:
            return None
        text = data.decode(errors="replace")
        self.note("o", text)
        self.raw += text
        return text

    @property
    def text(self):
        """What came since the last line that was typed, as lines: of one that was written over what stands last."""
        return re.sub(r"[^\n]*\r(?=[^\n])", "", CODES.sub("", re.sub("\r+\n", "\n", self.raw)))

    def until(self, pattern, wait_s=WAIT_S):
        """Reads until the text since the last line that was typed has this; gives that text, or None."""
        end = time.monotonic() + wait_s
        while not re.search(pattern, self.text, re.M):
            if time.monotonic() > end or self.read(1) is None:
                return None
        return self.text

    def type(self, line):
        self.raw = ""
        self.note("i", line + "\r")
        os.write(self.fd, (line + "\r").encode())

    def end(self):
        """Waits for its end; its exit status, None: it had to be killed."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and self.read(1) is not None:
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        folder = os.environ.get("SCRY_RECORD")
        if folder:
            with open(os.path.join(folder, re.sub(r"\W+", "-", self.name) + ".cast"), "w", encoding="utf-8") as f:
                f.write(self.recording())
        return status

    def recording(self):
        return "\n".join(json.dumps(e) for e in (self.head, *self.events)) + "\n"
