/* SPDX-License-Identifier: Apache-2.0 */
/* Where files of other machines are, and the connection: against a server of a few lines at the other end of a socket. */
#include "live/reach/reach_conn.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static void test_urls(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host, *port, *user, *path, *peer;
	} good[] = {
		{"connect://h:80/bin/ls", "h", "80", NULL, "/bin/ls", "connect://h:80"},
		{"connect://[::1]:5555/a b", "::1", "5555", NULL, "/a b", "connect://[::1]:5555"},
		{"unix-connect:///run/s:x/y.sock:/bin/ls", "/run/s:x/y.sock", NULL, NULL, "/bin/ls", "unix-connect:///run/s:x/y.sock"},
		{"ssh://me@h/usr/lib/x.so", "h", NULL, "me", "/usr/lib/x.so", "ssh://me@h"},
		{"ssh://h:2222/x", "h", "2222", NULL, "/x", "ssh://h:2222"},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct reach_url u;
		assert_null(reach_url_parse(good[i].text, true, &u));
		assert_string_equal(u.host, good[i].host);
		assert_string_equal(u.path, good[i].path);
		assert_string_equal(u.peer, good[i].peer);
		assert_true(!u.port == !good[i].port && (!u.port || !strcmp(u.port, good[i].port)));
		assert_true(!u.user == !good[i].user && (!u.user || !strcmp(u.user, good[i].user)));
		assert_true(reach_is_url(good[i].text));
		reach_url_fini(&u);
	}
	static const char *const bad[] = {"connect://h/bin/ls",	    "connect://:80/x",	 "connect://h:0/x", "connect://h:65536/x", "connect://h:80",
					  "ssh://-oProxyCommand=x/y", "ssh://-l@h/y",	 "ssh://@h/y",	    "unix-connect://:/x",  "connect://[::1/x",
					  "connect://[::1]x/y",	    "connect://h:8x/y", "ssh://h\n/x",	    "file:///x",	   "ssh:///x"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct reach_url u;
		struct err *e = reach_url_parse(bad[i], true, &u);
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_INVALID);
		err_free(e);
	}
	assert_false(reach_is_url("/connect://x"));
}

/* A server: answers each packet with the next text of its script, sent as it stands. */
struct server {
	int fd;
	const char *const *script;
	unsigned packet_cnt;
	pthread_t thread;
};

static void *serve(void *ctx)
{
	struct server *s = ctx;
	struct gdb_decoder d = {0};
	for (const char *const *line = s->script; *line;) {
		struct gdb_packet p;
		enum gdb_item item = gdb_decoder_next(&d, &p);
		if (item == GDB_MORE) {
			uint8_t *room = gdb_decoder_room(&d, 4096);
			ssize_t n = room ? read(s->fd, room, 4096) : -1;
			if (n <= 0)
				break;
			gdb_decoder_filled(&d, (size_t)n);
		} else if (item == GDB_PACKET) {
			s->packet_cnt++;
			if (send(s->fd, *line, strlen(*line), MSG_NOSIGNAL) < 0)
				break;
			line++;
		} else if (item == GDB_NAK) {
			/* What it says when something is asked for again. */
			if (send(s->fd, *line, strlen(*line), MSG_NOSIGNAL) < 0)
				break;
			line++;
		}
	}
	gdb_decoder_fini(&d);
	/* What is sent to nobody would be a reset, and what was said before lost. */
	shutdown(s->fd, SHUT_WR);
	char rest[256];
	while (read(s->fd, rest, sizeof(rest)) > 0)
		;
	return NULL;
}

static struct err *begin(struct server *s, const char *const *script, struct reach_conn **ret)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*s = (struct server){.fd = pair[1], .script = script};
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	struct reach_link link;
	assert_null(reach_link_fd(pair[0], &link));
	return reach_conn_new(link, &(struct reach_wait){.stall_ms = 60000}, ret);
}

static void end(struct server *s, struct reach_conn *c)
{
	reach_conn_free(c);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static void ask(struct reach_conn *c, const char *text, uint64_t tag, unsigned flags)
{
	buf_add_str(reach_begin(c), text);
	assert_null(reach_send(c, tag, flags));
}

static void reply_is(struct reach_conn *c, uint64_t tag, const char *text)
{
	struct reach_reply r;
	assert_null(reach_reply(c, &r));
	assert_int_equal(r.tag, tag);
	assert_true(gdb_span_is(r.payload, text));
}

static void test_many_in_flight(void **state)
{
	(void)state;
	static const char *const script[] = {"+$OK#9a", "$PacketSize=47ff;QStartNoAckMode+#00", "$F1;a}\x03#00", "$F4* ;#00",
					     "noise+$#00%Stop:#00$E05#00", NULL};
	struct server s;
	struct reach_conn *c = NULL;
	assert_null(begin(&s, script, &c));
	for (unsigned i = 0; i < 3; i++)
		ask(c, "vFile:pread:5,1,0", i, 0);
	assert_int_equal(reach_open_cnt(c), 3);
	reply_is(c, 0, "F1;a#");
	assert_int_equal(reach_features(c)->packet_len, 0x47ff);
	assert_int_equal(reach_conn_kind(c), REACH_GDBSERVER);
	reply_is(c, 1, "F4444;");
	reply_is(c, 2, "");
	assert_int_equal(reach_turn_cnt(c), 2);
	end(&s, c);
	assert_int_equal(s.packet_cnt, 5);
}

/* Without no-ack mode: one at a time, acks both ways, and what was damaged is asked for again. */
static void test_one_at_a_time(void **state)
{
	(void)state;
	static const char *const script[] = {"+$#00", "+$PacketSize=1000#f1", "+$F1;a#00", "$F1;a#13", "-", "+$OK#9a",
					     "+$O41#b4$O42#b5$W00#b7", NULL};
	struct server s;
	struct reach_conn *c = NULL;
	assert_null(begin(&s, script, &c));
	ask(c, "first", 1, 0);
	ask(c, "second", 2, 0);
	ask(c, "vCont;c", 3, REACH_RUNS);
	reply_is(c, 1, "F1;a");
	assert_int_equal(reach_conn_kind(c), REACH_PLAIN);
	reply_is(c, 2, "OK");
	reply_is(c, 3, "O41");
	assert_int_equal(reach_open_cnt(c), 1);
	reply_is(c, 3, "O42");
	reply_is(c, 3, "W00");
	assert_int_equal(reach_open_cnt(c), 0);
	end(&s, c);
	assert_int_equal(s.packet_cnt, 6); /* one of them twice */
}

static void fails(const char *const *script, enum err_kind kind)
{
	struct server s;
	struct reach_conn *c = NULL;
	struct err *e = begin(&s, script, &c);
	struct gdb_span reply;
	if (!e)
		e = reach_ask(c, &reply, "ask%d", 1);
	assert_non_null(e);
	assert_int_equal(e->kind, kind);
	err_free(e);
	end(&s, c);
}

static void test_bad_servers(void **state)
{
	(void)state;
	static const char *const gone[] = {NULL};
	static const char *const gone_later[] = {"+$OK#9a", "+$half", NULL};
	static const char *const bad_sum[] = {"+$OK#9a", "$x#11", NULL};
	static const char *const bad_run[] = {"+$OK#9a", "$#00", "$*!#00", NULL};
	static const char *const bad_escape[] = {"+$OK#9a", "$#00", "$}#00", NULL};
	static const char *const always_bad[] = {"+$#00", "+$#00", "+$x#11", "$x#11", "$x#11", "$x#11", NULL};
	fails(gone, ERR_IO);
	fails(gone_later, ERR_IO);
	fails(bad_sum, ERR_BAD_INPUT);
	fails(bad_run, ERR_BAD_INPUT);
	fails(bad_escape, ERR_BAD_INPUT);
	fails(always_bad, ERR_BAD_INPUT);
}

/* Silence ends; what comes late does not shift the replies. */
static void test_stall(void **state)
{
	(void)state;
	static const char *const script[] = {"+$OK#9a", "$qEcho+#00", "$was#00", "", "$late#00$qEcho:1#00", "$now#00", NULL};
	struct server s;
	struct reach_conn *c = NULL;
	struct gdb_span reply;
	assert_null(begin(&s, script, &c));
	assert_null(reach_ask(c, &reply, "zeroth")); /* and with it the answer to qSupported */
	reach_set_wait(c, &(struct reach_wait){.stall_ms = 50});
	struct err *e = reach_ask(c, &reply, "first");
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_TIMEOUT);
	err_free(e);
	reach_set_wait(c, &(struct reach_wait){.stall_ms = 60000});
	assert_null(reach_resync(c));
	assert_null(reach_ask(c, &reply, "second"));
	assert_true(gdb_span_is(reply, "now"));
	end(&s, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),	    cmocka_unit_test(test_many_in_flight), cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_bad_servers), cmocka_unit_test(test_stall),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
