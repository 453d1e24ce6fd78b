#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scry platform` packet by packet: who may come and do what, files, processes, debugging, and clients that mean harm. Prints TAP. SCRY is the
program."""
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rspclient import Platform, Rsp, WAIT_S, escaped, hexed, unescaped, wait_until  # noqa: E402

SCRY = os.environ.get("SCRY", "")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(tempfile.mkdtemp(prefix="scry-platform-"))
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT + "/run", NO_COLOR="1")
SUBJECT = ROOT + "/debuggee"
count = failed = 0


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    return good


def same(got, want, what):
    if not ok(got == want, what):
        print(f"# got {got!r:.300}\n# not {want!r:.300}", flush=True)


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # skip {why}", flush=True)


def cli(*words):
    return subprocess.run([SCRY, *words], capture_output=True, text=True, env=ENV, timeout=WAIT_S, check=False)


def stdio(*words):
    return Rsp(subprocess.Popen([SCRY, "platform", "--stdio", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV, cwd=ROOT))


def write(path, data, mode=0o644):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


# --- who may come ------------------------------------------------------------------------------------------------------
def test_words():
    for words in (["platform"], ["platform", "--stdio", "--socket", "x"], ["platform", "--listen", "nowhere", "--allow-remote"], ["platform", "--", "true"],
                  ["platform", "--listen", "127.0.0.1:0", "--stdio", "--allow-remote"]):
        same(cli(*words).returncode, 2, f"scry {' '.join(words)}: what is asked for makes no sense")
    r = cli("platform", "--listen", "127.0.0.1:0")
    ok(r.returncode == 1 and "--allow-remote" in r.stderr and "every user" in r.stderr, "TCP needs --allow-remote, which says why")
    r = cli("platform", "--socket", ROOT + "/s", "--root", ROOT + "/nowhere")
    ok(r.returncode != 0 and "--root" in r.stderr, "a root that is not there is said at once")
    text = cli("help", "platform").stdout
    ok("equals a shell" in text and "every user of this machine" in text and "not confined" in text, "the help says what the permissions come to")
    p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV)
    c = p.client()
    same(c.ask("qLaunchGDBServer;host:x;").split(b";")[1], b"port:%d" % p.at[1], "the debug server is at the same port")
    c.close()
    ok("equals a shell" in p.stop(), "a server over TCP says what it lets others do")


def test_socket():
    p = Platform(SCRY, "--socket", ROOT + "/sock", env=ENV)
    same(stat.S_IMODE(os.stat(ROOT + "/sock").st_mode), 0o600, "the socket is its owner's alone")
    c = p.client()
    ok(c.ask("qHostInfo").startswith(b"triple:"), "it answers there")
    c.close()
    same(cli("platform", "--socket", ROOT + "/sock").returncode, 1, "a second server on the same socket is refused")
    if os.geteuid() == 0:
        os.chmod(ROOT, 0o755)
        os.chmod(ROOT + "/sock", 0o666)
        code = ("import os,socket,sys;os.setgid(65534);os.setuid(65534);s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);"
                "s.sendall(b'+$qHostInfo#9b');print(s.recv(10))")
        r = subprocess.run([sys.executable, "-c", code, ROOT + "/sock"], capture_output=True, text=True, timeout=WAIT_S, check=False)
        ok("triple" not in r.stdout, "another user gets nothing, even where the mode lets him in")
    else:
        skip("another user gets nothing", "needs root")
    p.stop()
    ok(not os.path.exists(ROOT + "/sock"), "the socket goes with the server")


def test_permissions():
    c = stdio()
    for packet in ("vRun;2f62696e2f74727565", "A18,0,2f62696e2f74727565", "vAttach;1", "qPlatform_shell:6964,0000000a", "qLaunchGDBServer;host:x;"):
        same(c.ask(packet)[:1], b"E", f"without --allow-run {packet.split(';')[0].split(':')[0]} is refused")
    same(c.ask("?"), b"E0d", "and there is no process")
    ok(b"vContSupported" not in c.ask("qSupported:"), "nor is debugging offered")
    c.close()
    p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", env=ENV)
    c = p.client()
    write(ROOT + "/keep", b"kept")
    for packet, want in ((f"vFile:open:{hexed(ROOT + '/made')},601,1ff", b"F-1,d"), (f"vFile:unlink:{hexed(ROOT + '/keep')}", b"F-1,d"),
                         (f"vFile:symlink:{hexed('x')},{hexed(ROOT + '/made')}", b"F-1,d"), (f"qPlatform_mkdir:000001ff,{hexed(ROOT + '/made')}", b"F-1,d"),
                         (f"qPlatform_chmod:000001ff,{hexed(ROOT + '/keep')}", b"F-1,d")):
        same(c.ask(packet), want, f"over TCP {packet.split(':')[0] + packet.split(':')[1][:8]} changes nothing")
    ok(not os.path.lexists(ROOT + "/made") and os.path.exists(ROOT + "/keep"), "nothing was changed")
    c.close()
    p.stop()


# --- files --------------------------------------------------------------------------------------------------------------
def test_files():
    data = bytes(range(256)) * 8192 + b"#$}*" * 5000
    write(ROOT + "/data", data, 0o640)
    c = stdio()
    fd = int(c.ask(f"vFile:open:{hexed(ROOT + '/data')},0,0")[1:], 16)
    got = b""
    while len(got) < len(data):
        got += c.pread(fd, 500000, len(got))
    ok(got == data, "a file comes as it is, bytes that need escaping among them")
    same(c.pread(fd, 100, len(data)), b"", "at its end there is nothing")
    same(c.pread(fd, (1 << 56) - 1, 5)[:50], data[5:55], "a count of 2^56 is cut to what there is")
    same(c.ask(f"vFile:pread:{fd:x},10,ffffffffffffffff"), b"F-1,16", "an offset that no file has is EINVAL")
    same(c.ask("vFile:pread:77,10,0"), b"F-1,9", "a file that is not open is EBADF")
    same(c.ask("vFile:pread:zz"), b"E16", "what cannot be read is an error")
    same(c.ask("vFile:nothing:00"), b"", "an unknown packet is not supported")
    st = c.ask(f"vFile:fstat:{fd:x}")
    same(struct.unpack(">7I3Q3I", st[4:])[7], len(data), "fstat has its length")
    same(c.ask(f"vFile:stat:{hexed(ROOT + '/data')}"), st, "stat is the same")
    same(c.ask(f"vFile:close:{fd:x}"), b"F0", "it is closed")
    same(c.ask(f"vFile:close:{fd:x}"), b"F-1,9", "and is not closed twice")
    h = hexed(ROOT + "/data")
    same(c.ask(f"vFile:size:{h}"), b"F%016x" % len(data), "size")
    same(c.ask(f"vFile:mode:{h}"), b"F1a0", "mode")
    same(c.ask(f"vFile:exists:{h}") + c.ask(f"vFile:exists:{h}00") + c.ask(f"vFile:exists:{hexed(ROOT + '/no')}"), b"F,1" + b"E16" + b"F,0", "exists")
    md5 = hashlib.md5(data).digest()
    same(c.ask(f"vFile:MD5:{h}"), b"F," + (md5[7::-1] + md5[:7:-1]).hex().encode(), "MD5, each half turned round as LLDB has it")
    same(c.ask(f"vFile:SHA256:{h}"), b"F," + hashlib.sha256(data).hexdigest().encode(), "SHA-256")
    same(c.ask(f"vFile:MD5:{hexed(ROOT)}"), b"F,x", "a folder has none")
    same(c.ask(f"vFile:size:{hexed(ROOT + '/no')}"), b"E02", "what is not there is ENOENT")
    write(ROOT + "/big", b"")
    with open(ROOT + "/big", "r+b") as f:
        f.truncate((5 << 30) + 16)
        f.seek(5 << 30)
        f.write(b"far behind 4 GiB")
    fd = int(c.ask(f"vFile:open:{hexed(ROOT + '/big')},0,0")[1:], 16)
    same(c.pread(fd, 100, 5 << 30), b"far behind 4 GiB", "offsets beyond 4 GiB are what they say")
    c.close()


def test_changes():
    c = stdio()
    path = ROOT + "/up"
    fd = int(c.ask(f"vFile:open:{hexed(path)},40000601,000001a4")[1:], 16)
    same(c.ask(b"vFile:pwrite:%x,0," % fd + escaped(b"#$}*abc")), b"F7", "bytes are written")
    same(c.ask(b"vFile:pwrite:%x,3," % fd + escaped(b"*xyz")), b"F4", "anywhere")
    c.ask(f"vFile:close:{fd:x}")
    same(open(path, "rb").read(), b"#$}*xyz", "and are there")
    same(c.ask(f"qPlatform_chmod:000001c0,{hexed(path)}"), b"F0", "chmod")
    same(stat.S_IMODE(os.stat(path).st_mode), 0o700, "took")
    same(c.ask(f"qPlatform_mkdir:000001ff,{hexed(ROOT + '/dir')}"), b"F0", "mkdir")
    same(c.ask(f"qPlatform_mkdir:000001ff,{hexed(ROOT + '/dir')}"), b"F11", "a second time it is EEXIST")
    same(c.ask(f"vFile:symlink:{hexed('up')},{hexed(ROOT + '/link')}"), b"F0", "symlink")
    same(c.ask(f"vFile:readlink:{hexed(ROOT + '/link')}"), b"F2;up", "readlink")
    same(c.ask(f"vFile:unlink:{hexed(ROOT + '/link')}"), b"F0", "unlink")
    same(c.ask(f"vFile:unlink:{hexed(ROOT + '/link')}"), b"F-1,2", "is ENOENT when it is gone")
    same(c.ask(f"QSetWorkingDir:{hexed(ROOT + '/dir')}"), b"OK", "the working folder is set")
    same(bytes.fromhex(c.ask("qGetWorkingDir").decode()).decode(), ROOT + "/dir", "and said")
    same(c.ask(f"vFile:exists:{hexed('../up')}"), b"F,1", "relative names begin there")
    names = bytes.fromhex(c.ask(f"qPathComplete:0,{hexed(ROOT + '/d')}")[1:].decode().split(",")[0]).decode()
    ok(names.startswith(ROOT + "/d"), "names are completed")
    c.close()


def test_root():
    inside = ROOT + "/jail"
    os.makedirs(inside + "/sub")
    write(inside + "/file", b"inside")
    write(ROOT + "/secret", b"outside")
    os.symlink(ROOT + "/secret", inside + "/escape")
    os.symlink("../secret", inside + "/sub/up")
    os.symlink("/file", inside + "/fine")
    c = stdio("--root", inside)
    def read(name):
        r = c.ask(f"vFile:open:{hexed(name)},0,0")
        return c.pread(int(r[1:], 16), 100, 0) if not r.startswith(b"F-") else r
    for name in ("/file", "file", "/../../file", "/sub/../file", "/fine"):
        same(read(name), b"inside", f"--root: {name} is inside")
    for name in ("/escape", "/sub/up", "/../secret", ROOT + "/secret", "/proc/self/root" + ROOT + "/secret", "/sub/../../secret"):
        same(read(name), b"F-1,2", f"--root: {name.replace(ROOT, '...')} is not there")
    same(c.ask(f"vFile:symlink:{hexed('/../../../..' + ROOT + '/secret')},{hexed('/made')}"), b"F0", "a link out can be made")
    same(read("/made"), b"F-1,2", "and leads nowhere")
    same(c.ask(f"qPlatform_mkdir:000001ff,{hexed('../../x')}"), b"F0", "a folder is made")
    ok(os.path.isdir(inside + "/x"), "inside")
    same(c.ask("qGetWorkingDir"), hexed("/").encode(), "the root is /")
    shutil.copy(SUBJECT, inside + "/sub/prog")
    info = c.ask(f"qModuleInfo:{hexed('/sub/./prog')};")
    ok(hexed("/sub/prog").encode() in info, "modules are read below the root, and named from it")
    same(c.ask(f"qModuleInfo:{hexed(SUBJECT)};")[:1], b"E", "and nowhere else")
    c.close()


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", out).group(1).upper()


def test_platform():
    c = stdio("--allow-run")
    h = hexed(SUBJECT)
    info = dict(p.split(":") for p in c.ask(f"qModuleInfo:{h};{hexed('x86_64-pc-linux-gnu')}").decode().strip(";").split(";"))
    same(bytes.fromhex(info["uuid"]).decode(), build_id(SUBJECT), "a module's build-id")
    same(int(info["file_size"], 16), os.path.getsize(SUBJECT), "and its length")
    same(c.ask(f"qModuleInfo:{h};{hexed('aarch64-unknown-linux')}")[:1], b"E", "of another machine there is none")
    mods = c.ask(escaped(b'jModulesInfo:[{"file":"%s","triple":""},{"file":"/no/thing","triple":""}]' % SUBJECT.encode()))
    ok(build_id(SUBJECT).encode() in mods and b"/no/thing" not in mods, "several modules at once, without those that are not there")
    same(c.ask("jModulesInfo:[{]")[:1], b"E", "no JSON is an error")
    reply = c.ask(f"qPlatform_shell:{hexed('echo out; echo err >&2; exit 3')},0000000a,{hexed(ROOT)}")
    same(reply, b"F,00000003,00000000,out\nerr\n", "a shell's status and output")
    same(c.ask(f"qPlatform_shell:{hexed('pwd')},0000000a,{hexed(ROOT)}"), b"F,00000000,00000000," + ROOT.encode() + b"\n", "in its folder")
    same(c.ask(f"qPlatform_shell:{hexed('exec sleep 1000')},00000001")[:20], b"F,00000000,00000009,", "that takes too long is killed")
    sleeper = subprocess.Popen(["sleep", "1000"])
    ok(wait_until(lambda: hexed("1000").encode() in c.ask(f"qProcessInfoPID:{sleeper.pid}")), "a process by its number, with its words")
    ok(f"pid:{sleeper.pid};ppid:{os.getpid()};" in c.ask(f"qProcessInfoPID:{sleeper.pid}").decode(), "and its parent")
    first, found = c.ask("qfProcessInfo:all_users:1;"), False
    while first[:1] != b"E":
        found |= b"pid:%d;" % sleeper.pid in first
        first = c.ask("qsProcessInfo")
    ok(found, "and among all")
    same(c.ask(f"qfProcessInfo:name:{hexed('sleep')};name_match:equals;pid:{sleeper.pid};").split(b";")[0], b"pid:%d" % sleeper.pid, "by its name")
    sleeper.kill()
    sleeper.wait()
    same(c.ask("qUserName:0"), hexed("root").encode(), "names of users")
    same(c.ask("qEcho:12"), b"qEcho:12", "an echo")
    same(len(c.ask("qSpeedTest:response_size:1000;")), 1005, "as many bytes as asked for")
    same(len(c.ask("qSpeedTest:response_size:99999999999;")) - 5, 16 << 20, "up to a limit")
    c.close()


# --- debugging -----------------------------------------------------------------------------------------------------------
class Debug(Rsp):
    """Speaks as LLDB does: thread suffixes, Linux' signals."""

    def begin(self, *words, lldb=True):
        self.features = self.ask("qSupported:xmlRegisters=i386;" + ("multiprocess+" if lldb else "swbreak+;hwbreak+;exec-events+"))
        if lldb:
            self.ask("QThreadSuffixSupported")
            self.ask("QListThreadsInStopReply")
        if words:
            self.stop = self.ask("vRun;" + ";".join(hexed(w) for w in words))
        return self

    def reg(self, n):
        return int.from_bytes(bytes.fromhex(self.ask(f"p{n:x}").decode()), "little")

    def memory(self, va, n):
        return self.ask(f"x{va:x},{n:x}")


def debug(*words, lldb=True, opts=()):
    c = Debug(subprocess.Popen([SCRY, "platform", "--stdio", "--allow-run", *opts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV, cwd=ROOT))
    return c.begin(*words, lldb=lldb)


def symbols():
    out = subprocess.run(["nm", SUBJECT], capture_output=True, text=True, check=True).stdout
    return {f[2]: int(f[0], 16) for f in (line.split() for line in out.splitlines()) if len(f) == 3}


def field(stop, key):
    """Of a stop reply, T and two digits and pairs."""
    return next((p.split(b":", 1)[1].decode() for p in stop[3:].split(b";") if p.startswith(key.encode() + b":")), None)


def load_base(c):
    """Where the subject was loaded: what is mapped first."""
    return int(c.ask(f"qFileLoadAddress:{hexed(SUBJECT)}"), 16)


def test_launch():
    c = debug(SUBJECT, "one")
    ok(c.stop.startswith(b"T05thread:p") and field(c.stop, "threads"), "a program is stopped at its first instruction")
    pid = int(field(c.stop, "thread")[1:].split(".")[0], 16)
    ok(f"pid:{pid:x};" in c.ask("qProcessInfo").decode() and os.path.exists(f"/proc/{pid}"), "it is there")
    base, syms = load_base(c), symbols()
    ok(b"<feature name=\"org.gnu.gdb.i386.core\">" in c.ask("qXfer:features:read:target.xml:0,fffff"), "its registers are described")
    part = c.ask("qXfer:features:read:target.xml:10,20")
    ok(part[:1] == b"m" and part[1:] == c.ask("qXfer:features:read:target.xml:0,fffff")[0x11:0x31], "in pieces, too")
    ok(len(c.ask("qXfer:auxv:read::0,1000")) > 100, "and its auxiliary vector")
    same(c.ask("qXfer:exec-file:read::0,1000"), b"l" + SUBJECT.encode(), "and what program it is")
    work = base + syms["work"]
    code = c.memory(work, 16)
    same(c.ask(f"Z0,{work:x},1"), b"OK", "a breakpoint")
    same(c.memory(work, 16), code, "is not seen in memory")
    same(c.ask(f"M{work + 1:x},1:{code[1]:02x}"), b"OK", "memory is written beside it")
    stop = c.ask("vCont;c")
    same((stop[:3], field(stop, "reason"), c.reg(16)), (b"T05", "breakpoint", work), "is hit")
    same(c.reg(5), 0, "with the first argument")
    names = c.ask("qXfer:libraries-svr4:read::0,fffff").decode()
    ok("libc.so.6" in names and "l_addr" in names, "libraries are listed")
    stop = c.ask("vCont;c")
    same((c.reg(5), c.reg(16)), (1, work), "goes on over its breakpoint and comes to it again")
    counter = base + syms["counter"]
    region = c.ask(f"qMemoryRegionInfo:{counter:x}").decode()
    ok("permissions:rw;" in region and hexed(SUBJECT) in region, "memory has its permissions and its file")
    same(c.ask("qMemoryRegionInfo:10").decode()[:8], "start:0;", "a hole is one")
    same(c.ask(f"Z2,{counter:x},4"), b"OK", "a watchpoint")
    stop = c.ask("vCont;c")
    same((field(stop, "reason"), bytes.fromhex(field(stop, "description")).split()[0]), ("watchpoint", b"%d" % counter), "is hit when it is written")
    same(struct.unpack("<i", c.memory(counter, 4))[0], 1, "after the write")
    same(c.ask(f"z2,{counter:x},4") + c.ask(f"z0,{work:x},1"), b"OKOK", "both are taken away")
    before = c.reg(16)
    stop = c.ask(f"vCont;s:{field(stop, 'thread')}")
    ok(field(stop, "reason") == "trace" and c.reg(16) != before, "a step")
    c.ask("P5=2a00000000000000")
    same(c.reg(5), 42, "a register is written")
    same(c.ask(f"M{counter:x},4:05000000"), b"OK", "memory is written")
    same(c.ask(f"m{counter:x},4"), b"05000000", "and read")
    same(c.ask(b"X%x,4:" % counter + escaped(b"#$}*")), b"OK", "in binary, too")
    same(c.memory(counter, 4), b"#$}*", "and read so")
    same(c.ask("x10,4")[:1], b"E", "what is not mapped is an error")
    same(len(c.memory(base, 0x7fffffff)) > 4096, True, "as much as there is is read")
    same(c.ask("vCont;c"), b"W07;process:%x" % pid, "its exit status")
    same(c.output, b"hello 2 one\n", "and its output came")
    same(c.ask("?"), b"W07;process:%x" % pid, "once more")
    c.begin(SUBJECT)
    ok(c.stop.startswith(b"T05"), "another is launched on the same connection")
    c.close()


def test_given():
    r = cli("platform", "--stdio", "--", SUBJECT)
    ok(r.returncode == 1 and "--allow-run" in r.stderr, "a program for clients needs --allow-run")
    ok(cli("platform", "--stdio", "--allow-run", "--", ROOT + "/no").returncode != 0, "and must be there")
    c = Rsp(subprocess.Popen([SCRY, "platform", "--stdio", "--allow-run", "--", SUBJECT, "given"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV))
    ok(c.ask("?").startswith(b"T05"), "a client finds it launched")
    same(c.ask("c") + c.output, b"W07hello 2 given\n", "with its words")
    c.close()


def test_input():
    c = debug()
    c.ask(f"QEnvironmentHexEncoded:{hexed('SCRY_A=b c')}")
    c.ask(f"QEnvironmentUnset:{hexed('HOME')}")
    c.begin(SUBJECT, "env")
    c.ask("vCont;c")
    same(c.output, b"b c none\nhello 2 env\n", "the environment is what was said")
    c = debug(SUBJECT, "read")
    c.send("vCont;c")
    c.send("I" + hexed("some text\n"))
    c.output = b""
    replies = [c.reply(), c.reply()]
    ok(b"OK" in replies and any(r.startswith(b"W07") for r in replies), "input is taken while it runs")
    same(c.output, b"got some text\nhello 2 read\n", "and comes to the program")
    c.close()
    c = debug(lldb=False)
    c.ask(f"QSetSTDOUT:{hexed(ROOT + '/stdout')}")
    c.begin(SUBJECT, lldb=False)
    same(c.ask("c"), b"W07", "output goes to a file")
    same(open(ROOT + "/stdout").read(), "hello 1 \n", "where that was said")
    same(c.ask("vRun;" + hexed("/no/such/program"))[:1], b"E", "a program that is not there is an error")
    same(c.ask("vRun;" + hexed(ROOT + "/data"))[:1], b"E", "and one that is none")
    c.close()


def test_threads():
    c = debug(SUBJECT, "threads")
    work = load_base(c) + symbols()["work"]
    c.ask(f"Z0,{work:x},1")
    seen, steps, hits, stop = set(), set(), 0, c.ask("vCont;c")
    while stop[:1] == b"T" and hits < 300:
        hits += 1
        seen.add(field(stop, "thread"))
        if hits == 20:
            ids = c.ask("qfThreadInfo")[1:].decode().split(",")
            ok(field(stop, "thread") in ids and len(ids) >= 2, "threads are listed")
            ok(all(c.ask(f"T{i}") == b"OK" for i in ids) and c.ask("T7fffffff")[:1] == b"E", "and are alive")
            ok(all(b"tid" in c.ask("jThreadsInfo") for _ in range(2)), "with what there is to know")
            other = next(i for i in ids if i != field(stop, "thread"))
            same(len(bytes.fromhex(c.ask(f"p10;thread:{other};").decode())), 8, "registers of another")
        elif hits % 10 == 0:
            step = c.ask(f"vCont;s:{field(stop, 'thread')}")
            steps.add((field(step, "reason"), field(step, "thread") == field(stop, "thread")))
        stop = c.ask("vCont;c")
    same(steps, {("trace", True)}, "one thread is stepped while the others are held, whatever came of them meanwhile")
    same((hits, stop[:3], len(seen)), (200, b"W04", 4), "every call of every thread is seen once")
    ok(c.output == b"sum 200\n", "and none is lost")
    c.close()


def test_signals():
    c = debug(SUBJECT, "signals")
    stop = c.ask("vCont;c")
    same((stop[:3], field(stop, "reason")), (b"T0a", "signal"), "a signal stops it, by Linux' number")
    stop = c.ask("vCont;C0a")
    same((stop[:3], c.output), (b"T0b", b"signal 10\n"), "it is delivered when it goes on so")
    same(c.ask("vCont;C0b")[:3], b"X0b", "one ends it")
    c.close()
    c = debug(SUBJECT, "signals", lldb=False)
    same(c.ask("c")[:3], b"T1e", "for gdb it has gdb's number")
    c.ask("QPassSignals:1e")
    same(c.ask("c")[:3], b"T0b", "a signal that was not delivered is gone")
    same(c.output, b"signal 0\n", "the program did not see it")
    c.close()
    c = debug(SUBJECT, "signals", lldb=False)
    c.ask("QPassSignals:1e;e")
    same((c.ask("c")[:3], c.output), (b"T0b", b"signal 10\n"), "signals that pass do so without a stop")
    c.close()


def test_children():
    for mode in ("fork", "vfork"):
        c = debug(SUBJECT, mode)
        work = load_base(c) + symbols()["work"]
        c.ask("QPassSignals:11")
        c.ask(f"Z0,{work:x},1")
        stop = c.ask("vCont;c")
        same((field(stop, "reason"), c.reg(5)), ("breakpoint", 1), f"{mode}: the parent comes to its breakpoint, the child passes it")
        stop = c.ask("vCont;c")
        same((stop[:3], c.output), (b"W00", b"child 5\n"), f"{mode}: the child did what it does without us")
        c.close()
    c = debug(SUBJECT, "exec")
    stop = c.ask("vCont;c")
    same((stop[:3], field(stop, "reason")), (b"T05", "exec"), "another program in its place stops it")
    same(c.ask("vCont;c")[:3], b"W07", "and goes on")
    same(c.output, b"hello 2 after\n", "as the other")
    c.close()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_attach():
    p = subprocess.Popen([SUBJECT, "spin"], stdout=subprocess.DEVNULL)
    c = debug()
    stop = c.ask(f"vAttach;{p.pid:x}")
    same(stop[:3], b"T13", "a process is attached to")
    counter = load_base(c) + symbols()["counter"]
    work = load_base(c) + symbols()["work"]
    c.ask(f"Z0,{work:x},1")
    before, stops = c.memory(counter, 4), set()
    def runs():
        c.send("vCont;c")
        c.write(b"\x03")
        stops.add(c.reply()[:3])
        return c.memory(counter, 4) != before
    ok(wait_until(runs), "it runs when it is told to")
    same(stops, {b"T13"}, "until an interrupt stops it")
    same(c.ask("D"), b"OK", "it is let go")
    ok(is_running(p.pid), "and goes on")
    c.ask(f"vAttach;{p.pid:x}")
    c.close()
    ok(is_running(p.pid), "it goes on when the client just vanishes")
    c = debug()
    c.ask(f"vAttach;{p.pid:x}")
    same(c.ask(f"vKill;{p.pid:x}"), b"OK", "it is killed when that is asked for")
    same(p.wait(WAIT_S), -signal.SIGKILL, "and is gone")
    same(c.ask("vAttach;7fffffff")[:1], b"E", "there is no such process")
    c.close()
    c = debug(SUBJECT, "spin")
    pid = int(field(c.stop, "thread")[1:].split(".")[0], 16)
    c.send("vCont;c")
    c.close()
    ok(wait_until(lambda: not is_running(pid)), "what was launched ends with its client")


def test_steps():
    c = debug(SUBJECT, lldb=False)
    base, syms = load_base(c), symbols()
    work = base + syms["work"]
    c.ask(f"Z0,{work:x},1")
    stop = c.ask("vCont;c:-1")
    ok(b"swbreak:" in stop, "gdb is told of its breakpoint")
    stop = c.ask(f"vCont;r{work:x},{work + 12:x}:{field(stop, 'thread')}")
    pc = c.reg(16)
    ok(not work <= pc < work + 12, "a range is stepped through at once")
    c.ask(f"Z1,{work:x},1")
    c.ask(f"z0,{work:x},1")
    ok(b"hwbreak:" in c.ask("c"), "a breakpoint of the processor")
    whole = c.ask("g")
    same(c.ask(b"G" + whole), b"OK", "all registers are written as they were read")
    same(c.ask("g"), whole, "and are the same")
    n = sum(1 for i in range(5) if c.ask(f"Z2,{base + syms['counter'] + 8 * i:x},8") == b"OK")
    same(n, 3, "there are four debug registers and no more")
    same(c.ask("Z3,ffffffffffffff00,8")[:1], b"E", "and none for the kernel")
    c.close()


def test_pipelined():
    c = debug(SUBJECT)
    work = load_base(c) + symbols()["work"]
    for packet in (f"Z0,{work:x},1", "vCont;c", "p10", "qfThreadInfo", f"x{work:x},4"):
        c.send(packet)
    replies = [c.reply() for _ in range(5)]
    ok(replies[0] == b"OK" and replies[1][:1] == b"T" and int.from_bytes(bytes.fromhex(replies[2].decode()), "little") == work and
       replies[3][:1] == b"m" and len(replies[4]) == 4, "questions sent along with the order to go on are answered after the stop")
    c.close()
    c = Debug(subprocess.Popen([SCRY, "platform", "--stdio", "--allow-run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV), noack=False)
    c.write(b"$qC#00")
    same(c.read(), b"-", "with acknowledgements a wrong checksum is asked for again")
    c.write(b"+$qEcho:1#5b")
    said = b""
    while not said.endswith(b"#5b"):
        said += c.read()
    same(said, b"+$qEcho:1#5b", "and what comes well is acknowledged")
    c.write(b"-")
    same(c.read(), b"$qEcho:1#5b", "and said again")
    c.close()


# --- harm ----------------------------------------------------------------------------------------------------------------
def test_harm():
    p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV)
    write(ROOT + "/much", b"#" * (8 << 20))
    good = p.client()
    bad = []
    # One never reads, and wants all there is, again and again.
    never = p.client()
    fd = int(never.ask(f"vFile:open:{hexed(ROOT + '/much')},0,0")[1:], 16)
    never.sock.setblocking(False)
    request = f"vFile:pread:{fd:x},{(1 << 56) - 1:x},0".encode()
    packet = b"$" + request + b"#%02x" % (sum(request) & 255)
    try:
        for _ in range(100000):
            never.sock.send(packet * 100)
    except BlockingIOError:
        pass
    bad.append(never.sock)
    # One says nothing, one half a packet, one rubbish, one goes half.
    for data in (b"", b"$vFile:op", b"\x00\xff" * 50000, b"$" * 100000, b"$}#7d", b"$*" * 50000, b"+++---" * 1000):
        s = socket.create_connection(p.at)
        s.sendall(data)
        bad.append(s)
    half = p.client()
    half.send("qHostInfo")
    half.sock.shutdown(socket.SHUT_WR)
    ok(half.reply().startswith(b"triple:"), "a client that half-closes gets its answers")
    endless = socket.create_connection(p.at)
    try:
        for _ in range(200):
            endless.sendall(b"$" + b"a" * (1 << 16) if _ == 0 else b"a" * (1 << 16))
        endless.settimeout(WAIT_S)
        ended = endless.recv(1) == b""
    except OSError:
        ended = True
    ok(ended, "a packet without an end is not waited for")
    many = [p.client() for _ in range(20)]
    ok(all(c.ask("qEcho:x") == b"qEcho:x" for c in many) and good.ask("qEcho:y") == b"qEcho:y", "others are answered all the while")
    files = [good.ask(f"vFile:open:{hexed('/dev/null')},0,0") for _ in range(300)]
    ok(files[0] == b"F3" and files[-1] == b"F-1,18", "the files a client has open are limited")
    for packet in ("qXfer:features:read:target.xml:0,ffffffffffffffff", "m0,ffffffffffffffff", "x0,ffffffffffffffff", "qSearch:memory:0;ffffffffffffffff;a",
                   "vCont;c:p-1.-1;r0,0", "G", "P", "Z", "Z9", "Z0", "H", "Hg", "T", "qThreadStopInfo", "A", "vRun;", "vRun;;;", "QEnvironment:=", "QPassSignals:zz",
                   "qModuleInfo:", "qModuleInfo:2f", "qPathComplete:0", "qPlatform_shell:", "vFile:", "vFile:open:", "p", "qRegisterInfo", "jThreadsInfo", "c",
                   "vCont;", "D", "qfProcessInfo:::", "", "I", "QSetWorkingDir:zz"):
        good.send(packet)
    good.send("qEcho:end")
    replies = []
    try:
        while not replies or replies[-1] != b"qEcho:end":
            replies.append(good.reply())
    except EOFError:
        pass
    ok(replies[-1:] == [b"qEcho:end"] and len(replies) >= 30, "what is asked amiss is answered")
    good.send("k")
    try:
        ended = good.reply() == b""
    except (EOFError, ConnectionResetError):
        ended = True
    ok(ended, "a client that is neither LLDB nor stays ends with what it killed")
    for s in bad:
        s.close()
    # More than it has processes for: those that are there are answered, the rest is turned away, and once they are gone others come.
    first, crowd = p.client(), []
    for _ in range(300):
        s = socket.create_connection(p.at)
        crowd.append(s)
    ok(first.ask("qEcho:x") == b"qEcho:x", "a crowd of connections is no harm to who is there")
    ok(len(children_of(p.proc.pid)) <= 256, "nor are there more processes than it allows")
    for s in crowd:
        s.close()
    until, answer = time.monotonic() + WAIT_S, b""
    while answer != b"qEcho:z" and time.monotonic() < until:
        try:
            c = p.client()
            answer = c.ask("qEcho:z")
        except (OSError, EOFError):
            time.sleep(0.1)
    same(answer, b"qEcho:z", "and the server is there")
    first.close()
    c.close()
    p.stop()


def children_of(pid):
    """Processes below it, however deep: (number, state)."""
    found, parents = [], {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
                parents[int(name)] = (int(fields[1]), fields[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
    for child in parents:
        at = child
        while at in parents and at != pid:
            at = parents[at][0]
        if at == pid and child != pid:
            found.append((child, parents[child][1]))
    return found


def test_orphans():
    """However a client goes, nothing of what it had launched stays, neither stopped nor as a zombie; what it attached to goes on."""
    p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV)
    spinning = subprocess.Popen([SUBJECT, "spin"], stdout=subprocess.DEVNULL)
    # Root may, and would stop the machine.
    if os.geteuid():
        same(p.client().ask("vAttach;1")[:1], b"E", "init is not attached to")
    ends = {
        "a connection reset while it is stopped": ("threads", None, False),
        "a connection reset while it runs": ("spin", "vCont;c", False),
        "a connection reset in the middle of threads": ("threads", "vCont;c", False),
        "a connection reset after a fork": ("fork", "vCont;c", False),
        "a connection reset after another program took its place": ("exec", "vCont;c", False),
        "half a packet, then nothing": ("spin", b"$vCont;c#a8$m0", False),
        "an orderly end while it runs": ("spin", "vCont;c", True),
        "`k`": ("spin", "k", True),
    }
    for what, (mode, last, is_orderly) in ends.items():
        c = p.client()
        for packet in ("QThreadSuffixSupported", "QListThreadsInStopReply"):
            c.ask(packet)
        stop = c.ask("vRun;" + hexed(SUBJECT) + ";" + hexed(mode))
        pid = int(field(stop, "thread").removeprefix("p").split(".")[0], 16)
        if isinstance(last, bytes):
            c.write(last)
        elif last:
            c.send(last)
        if not is_orderly:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        ok(wait_until(lambda: not os.path.exists(f"/proc/{pid}") or pid not in [n for n, _ in children_of(p.proc.pid)]), f"{what}: the program is gone")
        ok(wait_until(lambda: not children_of(p.proc.pid)), f"{what}: and nothing is left of it")
    c = p.client()
    same(c.ask(f"vAttach;{spinning.pid:x}")[:1], b"T", "a process is attached to")
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()
    def state():
        with open(f"/proc/{spinning.pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    ok(wait_until(lambda: state() in "RS"), "it goes on when the client is cut off")
    # The client is killed, which the kernel tells of as of any end; so is the process that serves it.
    c = p.client()
    stop = c.ask("vRun;" + hexed(SUBJECT) + ";" + hexed("spin"))
    pid = int(field(stop, "thread").removeprefix("p").split(".")[0], 16)
    with open(f"/proc/{pid}/stat") as f:
        server = int(f.read().rsplit(")", 1)[1].split()[1])
    c.send("vCont;c")
    os.kill(server, signal.SIGKILL)
    ok(wait_until(lambda: not is_running(pid)), "what a connection's process had launched goes when that is killed")
    c.close()
    spinning.kill()
    spinning.wait()
    p.stop()


def main():
    if not SCRY:
        print("1..0 # skip SCRY is not set")
        return 0
    if subprocess.run(["cc", "-g", "-O0", "-pthread", "-Wl,--build-id", "-o", SUBJECT, HERE + "/../data/prog/debuggee.c"], check=False).returncode:
        ok(False, "the subject is built")
    os.makedirs(ENV["XDG_RUNTIME_DIR"], 0o700)
    for test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        try:
            test()
        except Exception:  # noqa: BLE001
            ok(False, test.__name__)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    print(f"1..{count}")
    shutil.rmtree(ROOT, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
