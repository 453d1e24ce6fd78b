# SPDX-License-Identifier: Apache-2.0
"""A workbench on a terminal that nobody looks at, driven over its socket."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time

WAIT_S = 120


class Workbench:
    """`report(good, what, *why)` is told what shows() found."""
    made = 0
    report = print

    def __init__(self, scry, folder, *words, wait="until=ready"):
        Workbench.made += 1
        self.scry, self.sock = scry, os.path.join(folder, f"sock{Workbench.made}")
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execv(scry, [scry, "--keys", "ida", "--rpc", self.sock, *words])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 40, 140, 0, 0))
        threading.Thread(target=self.drain, daemon=True).start()
        until = time.time() + WAIT_S
        while not os.path.exists(self.sock) and time.time() < until:
            time.sleep(0.05)
        if wait:
            self.ui("ui.wait", wait)

    def drain(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass

    def ui(self, *words):
        r = subprocess.run([self.scry, "ui", self.sock, *words], capture_output=True, text=True, errors="replace", timeout=WAIT_S)
        return r.stdout + r.stderr

    def screen(self):
        return self.ui("screen")

    def until(self, *patterns):
        """The screen once it shows all of these, or as it is after a long while."""
        end = time.time() + WAIT_S
        while True:
            s = self.screen()
            if all(re.search(p, s) for p in patterns) or time.time() > end:
                return s
            time.sleep(0.1)

    def shows(self, what, *patterns):
        s = self.until(*patterns)
        return Workbench.report(all(re.search(p, s) for p in patterns), what, [p for p in patterns if not re.search(p, s)], s)

    def end(self):
        self.ui("quit")
        for _ in range(200):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
            time.sleep(0.05)
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            Workbench.report(False, "it ends when it is asked to")
        os.close(self.fd)
