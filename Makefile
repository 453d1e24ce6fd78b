# The front door. Everything is built by Meson; nothing here lists a source.
#   make run [FILE=/bin/ls]   set up, build, open the workbench (without a terminal: the overview)
#   make test                 set up, build with sanitizers, run every test
#   make bench | make score   the figures of docs/measuring.md
#   make judge [STATES=10000] every form of instruction that is lifted, on the processor and in the interpreter
#   make fuzz [SECONDS=60]    every fuzz target for a while
#   make check                the rules a script can see
#   make install [PREFIX=/usr/local] [DESTDIR=]
FILE ?= /bin/ls
PREFIX ?= /usr/local
SECONDS ?= 60
SANITIZE = -Db_sanitize=address,undefined -Db_lundef=false

run: build-rel
	@./build-rel/src/main/scry $(FILE)

build-rel: FORCE
	@tools/setup run
	@[ -f $@/build.ninja ] || meson setup $@ --buildtype=release -Dtests=false >$@.log || { cat $@.log; exit 1; }
	@ninja -C $@ >$@.log || { cat $@.log; exit 1; }

build: FORCE
	@tools/setup run test
	@[ -f $@/build.ninja ] || meson setup $@ $(SANITIZE) >$@.log || { cat $@.log; exit 1; }
	@ninja -C $@ >$@.log || { cat $@.log; exit 1; }

build-bench: FORCE
	@tools/setup run bench
	@[ -f $@/build.ninja ] || meson setup $@ --buildtype=release >$@.log || { cat $@.log; exit 1; }
	@ninja -C $@ >$@.log || { cat $@.log; exit 1; }

test: build
	@tests/run build

bench: build-bench
	@python3 tests/bench/bench.py --scry build-bench/src/main/scry --zydis build-bench/tests/bench/bench_zydis
	@python3 tests/bench/bench_graph.py --scry build-bench/src/main/scry --layout build-bench/tests/bench/bench_graph
	@python3 tests/bench/bench_edits.py --scry build-bench/src/main/scry --edits build-bench/tests/bench/bench_edits
	@python3 tests/bench/bench_tui.py --scry build-bench/src/main/scry --tool build-bench/tests/bench/bench_tui
	@python3 tests/bench/bench_serve.py --scry build-bench/src/main/scry --tool build-bench/tests/bench/bench_serve
	@python3 tests/bench/bench_project.py --scry build-bench/src/main/scry
	@python3 tests/bench/bench_code.py --scry build-bench/src/main/scry
	@python3 tests/bench/bench_python.py --build build-bench
	@python3 tests/bench/bench_live.py --live build-bench/tests/bench/bench_live
	@[ ! -x build-bench/tests/bench/bench_encoder ] || python3 tests/bench/bench_trace.py --encoder build-bench/tests/bench/bench_encoder \
		--switch build-bench/tests/bench/bench_switch.bpf.o --scry build-bench/src/main/scry || true
	@python3 tests/bench/bench_probe.py --probe build-bench/tests/bench/bench_probe || true
	@python3 tests/bench/bench_platform.py build-bench/src/main/scry || true
	@python3 tests/bench/bench_flow.py build-bench/src/main/scry || true
	@python3 tests/bench/bench_remote.py --scry build-bench/src/main/scry --delay build-bench/tests/bench/bench_delay || true
	@python3 tests/bench/bench_image.py --image build-bench/tests/bench/bench_image

score: build-bench
	@python3 tests/score/score.py --scry build-bench/src/main/scry
	@python3 tests/score/score_code.py --scry build-bench/src/main/scry
	@python3 tests/score/score_lines.py --scry build-bench/src/main/scry || true
	@python3 tests/score/score_shape.py --scry build-bench/src/main/scry || true
	@python3 tests/score/score_protos.py --scry build-bench/src/main/scry || true
	@python3 tests/score/score_trace.py build-bench/src/main/scry --seconds 300 || true

judge: build-bench
	@nice build-bench/tests/unit/unit-lift-native --judge $(STATES)

fuzz:
	@tools/setup run test
	@tests/fuzz/run $(SECONDS)

check:
	@tools/check

install: build-rel
	@meson configure build-rel --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C build-rel --quiet

clean:
	rm -rf build build-rel build-bench build-fuzz build*.log

FORCE:
.PHONY: run test bench score judge fuzz check install clean FORCE
