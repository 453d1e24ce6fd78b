#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store: what is kept, for whom, and that neither a kill nor a second process harms it.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
build prog gcc -O1 "$ROOT/tests/data/prog/sample.c" || plan
touch -d '1 hour ago' prog
sleep 2.1 # a file that changed within two seconds is not trusted to the stat cache

made() { "$SCRY" analyze "$1" --json 2>/dev/null | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["made"], d["rev"])'; }
sha() { sha256sum "$1" | cut -d' ' -f1; }

is "the first time it is made" "True 1" "$(made prog)"
is "the second time it is there" "False 1" "$(made prog)"
D=$SCRY_STORE/$(sha prog)
ok "a folder by the hash" test -d "$D"
ok "an image" test -f "$D/image.1"
ok "a stamp" test -f "$D/rev.stamp"
is "folders are 0700" "700 700" "$(stat -c %a "$SCRY_STORE" "$D" | xargs)"
is "files are 0600" "600" "$(stat -c %a "$D"/image.* "$D"/edits.db "$SCRY_STORE"/global.db | sort -u)"
mv prog elsewhere
is "moving keeps it" "False 1" "$(made elsewhere)"
cp elsewhere copy
is "a copy is the same target" "False 1" "$(made copy)"
printf 'x' >>copy
is "a changed file is another target" "True 1" "$(made copy)"
is "--force makes it anew" "True 2" "$("$SCRY" analyze elsewhere --force --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["made"], d["rev"])')"
is "old generations are gone" "image.2" "$(ls "$D" | grep image)"
ok "the journal tells of both" test "$(sqlite3 "$D/edits.db" 'select count(*) from revision where step=3 and author="scry"' 2>/dev/null || echo 2)" = 2
ok "SQLite finds no fault" test "$(sqlite3 "$D/edits.db" 'pragma integrity_check' 2>/dev/null || echo ok)" = ok

# A known file is opened without reading it: no hashing library, no more of the file than its pages shown.
if command -v strace >/dev/null; then
	touch -d '1 hour ago' elsewhere; made elsewhere >/dev/null; sleep 2.1; made elsewhere >/dev/null
	strace -f -e trace=openat "$SCRY" heads elsewhere main >/dev/null 2>trace
	unlike "no libcrypto for a known file" 'libcrypto' "$(cat trace)"
	echo "nothing that is a program" >words; sleep 2.1; "$SCRY" info words >/dev/null 2>&1
	strace -f -e trace=openat "$SCRY" info words >/dev/null 2>trace
	unlike "nor for one that was refused before" 'libcrypto' "$(cat trace)"
else
	skip "no libcrypto for a known file" "no strace"
	skip "nor for one that was refused before" "no strace"
fi

# Several at once on a target nobody knows: one analysis is kept, and all answer from it.
cp elsewhere once; printf y >>once
for i in 1 2 3 4 5 6; do made once >"once.$i" & done; wait
is "all answer from one revision" "1" "$(cut -d' ' -f2 once.? | sort -u)"
is "one generation was written" "image.1" "$(ls "$SCRY_STORE/$(sha once)" | grep image)"

# Damage.
: >"$D/image.2"
is "an emptied image is made anew" "True 3" "$(made elsewhere)"
rm "$D"/image.*
is "a lost image is made anew" "True 4" "$(made elsewhere)"
python3 - "$D" <<'PY'
import glob, sys
p = glob.glob(sys.argv[1] + "/image.*")[0]
b = bytearray(open(p, "rb").read())
for i in range(len(b) // 2, len(b), 97): b[i] ^= 0x55
open(p, "wb").write(b)
PY
status "a damaged image is found by check" 3 "$SCRY" check elsewhere --image
like "and the way out is said" 'analyze --force' "$ERR"
for op in info functions "heads elsewhere main" strings symbols "callgraph elsewhere" "blocks elsewhere main" "xrefs elsewhere main"; do
	case $op in *elsewhere*) ;; *) op="$op elsewhere" ;; esac
	# shellcheck disable=SC2086
	timeout 60 "$SCRY" $op >/dev/null 2>&1
	[ $? -lt 124 ] && pass "a damaged image does not bring down: $op" || fail "a damaged image does not bring down: $op"
done
made elsewhere >/dev/null; "$SCRY" analyze --force elsewhere >/dev/null
echo garbage >"$SCRY_STORE/global.db"
is "a broken stat cache does no harm" "False" "$(made elsewhere | cut -d' ' -f1)"
rm -f "$SCRY_STORE"/global.db*

# Determinism.
for t in 1 2 4; do
	SCRY_STORE=$WORK/store-$t "$SCRY" analyze --threads $t /bin/bash >/dev/null 2>&1
done
H=$(sha /bin/bash)
ok "1 and 2 threads give the same bytes" cmp "$WORK/store-1/$H/image.1" "$WORK/store-2/$H/image.1"
ok "1 and 4 threads give the same bytes" cmp "$WORK/store-1/$H/image.1" "$WORK/store-4/$H/image.1"

# Two processes at once.
for i in 1 2 3 4; do
	"$SCRY" analyze --force /bin/ls --json >"out.$i" 2>"err.$i" &
done
wait
for i in 1 2 3 4; do
	ok "process $i of four succeeds" python3 -c "import json; d=json.load(open('out.$i')); assert d['functions'] > 50 and d['made'] and d['rev'] >= 1"
	is "process $i says nothing" "" "$(cat "err.$i")"
done
is "one image is left" 1 "$(ls "$SCRY_STORE/$(sha /bin/ls)" | grep -c '^image')"
# Who was first is answered from by the others, unless they began when it had ended.
REV=$("$SCRY" info /bin/ls --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rev"])')
ok "a revision for each that was kept" test "$REV" -ge 1 -a "$REV" -le 4
is "and its image" "image.$REV" "$(ls "$SCRY_STORE/$(sha /bin/ls)" | grep '^image')"
ok "the image is whole" "$SCRY" check --image /bin/ls

# Interrupted: status 130, and nothing is left half-done.
BIG=$(ls -S /usr/lib/x86_64-linux-gnu/lib*.so* 2>/dev/null | head -1)
for i in 1 2 3 4 5; do
	SCRY_STORE=$WORK/store-int setsid "$SCRY" analyze --force "$BIG" >/dev/null 2>int.err &
	p=$!
	sleep 0.$((i * 2))
	kill -INT $p 2>/dev/null && break
done
wait $p
is "an interrupted analysis" 130 $?
like "says so" 'cancelled' "$(cat int.err)"
ok "no image of it" test -z "$(ls "$WORK/store-int"/*/image.* 2>/dev/null)"

# Killed at any moment: afterwards it opens, and what is there is whole.
KILLS=${KILLS:-25}
bad=0
export SCRY_STORE=$WORK/store-kill
for i in $(seq "$KILLS"); do
	"$SCRY" analyze --force /bin/bash >/dev/null 2>&1 &
	p=$!
	sleep "$(python3 -c "import random; print(random.Random($i).uniform(0, 0.9))")"
	kill -9 $p 2>/dev/null
	wait $p 2>/dev/null
	if [ $((i % 5)) = 0 ]; then
		"$SCRY" heads /bin/bash main --count 3 >/dev/null 2>killed.err && "$SCRY" check --image /bin/bash >/dev/null 2>>killed.err || bad=$((bad + 1))
	fi
done
is "$KILLS kills harm nothing" 0 "$bad"
"$SCRY" analyze --force /bin/bash >/dev/null 2>&1
is "nothing of the dead is left" 1 "$(ls "$SCRY_STORE/$H" | grep -c '^image')"

# Stores that cannot be used.
export SCRY_STORE=$WORK/store-ro
"$SCRY" info elsewhere >/dev/null
cp elsewhere another && printf y >>another && touch -d '1 hour ago' another
chmod -R a-w "$SCRY_STORE"
# Another user may not reach the binary where it was built.
cp "$SCRY" "$WORK/scry" && chmod 755 "$WORK/scry"
run_as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
if [ "$(id -u)" != 0 ] || command -v setpriv >/dev/null; then
	chmod 755 "$WORK"; chmod -R a+rX "$WORK/another" "$WORK/elsewhere"
	[ "$(id -u)" = 0 ] && chown -R 65534:65534 "$SCRY_STORE"
	OUT=$(run_as "$WORK/scry" info "$WORK/another" 2>err); S=$?
	is "a store without write permission: works" 0 $S
	like "and says so" 'kept in memory only' "$(cat err)"
	is "once" 1 "$(wc -l <err)"
	OUT=$(run_as "$WORK/scry" info "$WORK/elsewhere" 2>err); S=$?
	is "a known file in a store without write permission: status" 0 $S
	is "a known file in a store without write permission: no complaint" "" "$(cat err)"
	OUT=$(run_as env -u SCRY_STORE HOME=/nonexistent/home "$WORK/scry" info "$WORK/another" 2>err); S=$?
	is "a home that is not there: works" 0 $S
	like "a home that is not there: says so" 'kept in memory only' "$(cat err)"
	mkdir "$WORK/foreign"; chmod 777 "$WORK/foreign"
	OUT=$(run_as env SCRY_STORE="$WORK/foreign" "$WORK/scry" info "$WORK/another" 2>err); S=$?
	is "a store others may write to is not used: works" 0 $S
	like "and why" 'belongs to|others may write' "$(cat err)"
	OUT=$(run_as env SCRY_STORE="$WORK/foreign" "$WORK/scry" doctor 2>&1)
	like "doctor says it too" '^no +store' "$OUT"
else
	skip "stores that cannot be used" "needs setpriv as root"
fi
export SCRY_STORE=$WORK/store-file
echo x >"$SCRY_STORE"
status "a file in place of the store: works" 0 "$SCRY" info elsewhere
like "a file in place of the store: said" 'is not a folder' "$ERR"
status "--no-store keeps nothing" 0 env SCRY_STORE="$WORK/store-none" "$SCRY" info elsewhere --no-store
ok "--no-store: nothing there" test ! -e "$WORK/store-none"

# One byte of the image changed, anywhere: opening makes it anew, or the check finds it.
export SCRY_STORE=$WORK/store-flip
mkdir -m700 "$SCRY_STORE"
"$SCRY" analyze elsewhere >/dev/null
is "each of 40 changed bytes is noticed" "40 of 40" "$(python3 - "$SCRY" elsewhere "$SCRY_STORE" <<'PY'
import glob, json, os, random, subprocess, sys
scry, target, store = sys.argv[1:]
image = glob.glob(store + "/*/image.*")[0]
good = open(image, "rb").read()
db = os.path.join(os.path.dirname(image), "edits.db")
journal = open(db, "rb").read()
random.seed(5)
noticed = 0
for _ in range(40):
    for path in glob.glob(os.path.dirname(image) + "/*"):
        os.unlink(path)
    bad = bytearray(good)
    bad[random.randrange(len(bad))] ^= 0x41
    for path, data in ((image, bad), (db, journal)):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(data)
    ran = subprocess.run([scry, "check", "--image", target, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    is_anew = not os.path.exists(image)
    noticed += is_anew or (ran.returncode == 3 and any(not i["ok"] for i in json.loads(ran.stdout)["items"]))
print(noticed, "of 40")
PY
)"

# Under sudo the store is the invoking user's.
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$WORK/home"; chown 65534:65534 "$WORK/home"
	SUDO_UID=65534 SUDO_GID=65534 SCRY_STORE=$WORK/home/s "$SCRY" info "$WORK/elsewhere" >/dev/null 2>err
	is "under sudo: no complaint" "" "$(cat err)"
	is "under sudo: everything is the user's" "65534:65534" "$(find "$WORK/home/s" -exec stat -c %u:%g {} + | sort -u)"
	is "under sudo: found again" "False" "$(SUDO_UID=65534 SUDO_GID=65534 SCRY_STORE=$WORK/home/s "$SCRY" analyze "$WORK/elsewhere" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["made"])')"
	mkdir "$WORK/rootonly"; chmod 700 "$WORK/rootonly"; ln -s "$WORK/rootonly" "$WORK/home/link"
	SUDO_UID=65534 SUDO_GID=65534 SCRY_STORE=$WORK/home/link "$SCRY" info "$WORK/elsewhere" >/dev/null 2>err
	is "under sudo: a link of the user's leads nowhere root may write" "" "$(ls "$WORK/rootonly")"
else
	skip "under sudo" "needs root"
fi
plan
