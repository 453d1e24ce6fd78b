/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_line.h"

#include "session/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>

enum { LINE_MAX_LEN = 4096, CHOICES_MAX = 200 };

void cli_line_fini(struct cli_line *l)
{
	buf_fini(&l->text);
	for (unsigned i = 0; i < l->kept_cnt; i++)
		free(l->kept[i]);
	l->kept_cnt = 0;
}

static void put(const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

static void paint(const struct cli_line *l, const char *prompt)
{
	_cleanup_buf_ struct buf b = {0};
	buf_printf(&b, "\r%s", prompt);
	buf_add(&b, l->text.data, l->text.len);
	buf_add_str(&b, "\x1b[K");
	uint32_t back = ops_text_width(l->text.data ? l->text.data + l->pos : "", l->text.len - l->pos);
	if (back)
		buf_printf(&b, "\x1b[%uD", back);
	put(b.data, b.len);
}

static void set_text(struct cli_line *l, const char *s, size_t len)
{
	l->text.len = 0;
	buf_add(&l->text, s, MIN(len, (size_t)LINE_MAX_LEN));
	l->pos = l->text.len;
}

static void insert(struct cli_line *l, const char *s, size_t len)
{
	if (l->text.len + len > LINE_MAX_LEN || !buf_room(&l->text, len))
		return;
	memmove(l->text.data + l->pos + len, l->text.data + l->pos, l->text.len - l->pos);
	memcpy(l->text.data + l->pos, s, len);
	l->text.len += len;
	l->pos += len;
}

static void erase(struct cli_line *l, size_t from, size_t to)
{
	if (from >= to)
		return;
	memmove(l->text.data + from, l->text.data + to, l->text.len - to);
	l->text.len -= to - from;
	l->pos = from;
}

/* The byte where the character before or after `pos` begins. */
static size_t before(const struct cli_line *l, size_t pos)
{
	while (pos && ((uint8_t)l->text.data[--pos] & 0xc0) == 0x80)
		;
	return pos;
}

static size_t after(const struct cli_line *l, size_t pos)
{
	if (pos < l->text.len)
		pos++;
	while (pos < l->text.len && ((uint8_t)l->text.data[pos] & 0xc0) == 0x80)
		pos++;
	return pos;
}

/* Tab: as far as all ways agree; when that is no further, they are shown. */
static void complete(struct cli_line *l)
{
	char line[LINE_MAX_LEN + 1], one[256], agreed[256] = "";
	unsigned cnt = 0;
	if (!l->complete)
		return;
	memcpy(line, l->text.data ? l->text.data : "", l->pos);
	line[l->pos] = 0;
	const char *space = strrchr(line, ' ');
	size_t word = space ? (size_t)(space + 1 - line) : 0;
	_cleanup_buf_ struct buf all = {0};
	for (; cnt < CHOICES_MAX && l->complete(l->ctx, line, cnt, one, sizeof(one)); cnt++) {
		size_t n = 0;
		if (!cnt)
			snprintf(agreed, sizeof(agreed), "%s", one);
		while (agreed[n] && agreed[n] == one[n])
			n++;
		agreed[n] = 0;
		buf_add_str(&all, cnt ? "  " : "\r\n");
		ops_escape(&all, one, strlen(one));
	}
	if (!cnt)
		return;
	if (strlen(agreed) > l->pos - word) {
		insert(l, agreed + (l->pos - word), strlen(agreed) - (l->pos - word));
		if (cnt == 1)
			insert(l, " ", 1);
	} else if (cnt > 1) {
		buf_add_str(&all, cnt == CHOICES_MAX ? " ...\r\n" : "\r\n");
		put(all.data, all.len);
	}
}

static void show_kept(struct cli_line *l, int by)
{
	if ((by < 0 && !l->kept_at) || (by > 0 && l->kept_at >= l->kept_cnt))
		return;
	l->kept_at += (unsigned)by;
	const char *s = l->kept_at < l->kept_cnt ? l->kept[l->kept_at] : "";
	set_text(l, s, strlen(s));
}

/* An escape sequence: arrows, Home, End, Del. */
static void escape_key(struct cli_line *l)
{
	char s[8] = "";
	size_t n = 0;
	while (n + 1 < sizeof(s) && read(STDIN_FILENO, s + n, 1) == 1) {
		n++;
		if (n > 1 && s[n - 1] >= '@' && s[n - 1] <= '~')
			break;
		if (n == 1 && s[0] != '[' && s[0] != 'O')
			break;
	}
	char last = n ? s[n - 1] : 0;
	if (last == 'A' || last == 'B')
		show_kept(l, last == 'A' ? -1 : 1);
	else if (last == 'C')
		l->pos = after(l, l->pos);
	else if (last == 'D')
		l->pos = before(l, l->pos);
	else if (last == 'H' || (last == '~' && s[1] == '1'))
		l->pos = 0;
	else if (last == 'F' || (last == '~' && s[1] == '4'))
		l->pos = l->text.len;
	else if (last == '~' && s[1] == '3')
		erase(l, l->pos, after(l, l->pos));
}

enum { KEY_MORE, KEY_DONE, KEY_END, KEY_INTERRUPT };

static int take_key(struct cli_line *l, char ch)
{
	switch (ch) {
	case '\r':
	case '\n':
		return KEY_DONE;
	case 3:
		return KEY_INTERRUPT;
	case 4:
		if (!l->text.len)
			return KEY_END;
		erase(l, l->pos, after(l, l->pos));
		break;
	case 1:
		l->pos = 0;
		break;
	case 5:
		l->pos = l->text.len;
		break;
	case 11:
		erase(l, l->pos, l->text.len);
		break;
	case 21:
		erase(l, 0, l->pos);
		break;
	case 8:
	case 127:
		erase(l, before(l, l->pos), l->pos);
		break;
	case '\t':
		complete(l);
		break;
	case 27:
		escape_key(l);
		break;
	default:
		if ((uint8_t)ch >= 32)
			insert(l, &ch, 1);
		break;
	}
	return KEY_MORE;
}

static void keep(struct cli_line *l)
{
	if (l->kept_cnt && !strcmp(l->kept[l->kept_cnt - 1], l->text.data))
		return;
	if (l->kept_cnt == CLI_LINE_KEPT) {
		free(l->kept[0]);
		memmove(l->kept, l->kept + 1, (CLI_LINE_KEPT - 1) * sizeof(l->kept[0]));
		l->kept_cnt--;
	}
	char *copy = strdup(l->text.data);
	if (copy)
		l->kept[l->kept_cnt++] = copy;
}

static const char *plain_line(struct cli_line *l)
{
	char ch;
	bool has_any = false;
	for (ssize_t n; (n = read(STDIN_FILENO, &ch, 1)) != 0;) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		has_any = true;
		if (ch == '\n')
			break;
		if (l->text.len < LINE_MAX_LEN)
			buf_add_ch(&l->text, ch);
	}
	buf_add_ch(&l->text, 0);
	return has_any && !l->text.failed ? l->text.data : NULL;
}

const char *cli_line_read(struct cli_line *l, const char *prompt, bool *ret_is_interrupted)
{
	struct termios was, raw;
	*ret_is_interrupted = false;
	l->text.len = l->pos = 0;
	l->kept_at = l->kept_cnt;
	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &was) < 0)
		return plain_line(l);
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	int what = KEY_MORE;
	paint(l, prompt);
	while (what == KEY_MORE) {
		char ch;
		ssize_t n = read(STDIN_FILENO, &ch, 1);
		if (n < 0 && errno == EINTR)
			continue;
		what = n == 1 ? take_key(l, ch) : KEY_END;
		paint(l, prompt);
	}
	put("\r\n", 2);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &was);
	if (what == KEY_INTERRUPT) {
		*ret_is_interrupted = true;
		l->text.len = 0;
	}
	buf_add_ch(&l->text, 0);
	if (l->text.failed || what == KEY_END)
		return NULL;
	if (l->text.len > 1)
		keep(l);
	return l->text.data;
}
