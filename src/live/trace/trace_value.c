/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values in the spelling of strace(1): flags by name, signals, modes, device numbers, wait statuses. What has no
 * name is a number; nothing here reads memory.
 */
#include "live/trace/trace_int.h"
#include "live/trace/trace_fds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void trace_put_quoted(struct buf *out, const uint8_t *bytes, size_t len, bool all_hex)
{
	static const char plain[] = "\n\t\r\v\f\"\\", letters[] = "ntrvf\"\\";
	buf_add_ch(out, '"');
	for (size_t i = 0; i < len; i++) {
		uint8_t ch = bytes[i];
		const char *at = ch ? strchr(plain, ch) : NULL;
		if (all_hex) {
			buf_add(out, "\\x", 2);
			buf_add_hex(out, ch, 2);
		} else if (at) {
			buf_add_ch(out, '\\');
			buf_add_ch(out, letters[at - plain]);
		} else if (ch >= 0x20 && ch < 0x7f) {
			buf_add_ch(out, (char)ch);
		} else {
			/* Octal, as short as what follows allows. */
			bool has_digit = i + 1 < len && bytes[i + 1] >= '0' && bytes[i + 1] <= '9';
			buf_printf(out, has_digit ? "\\%03o" : "\\%o", ch);
		}
	}
	buf_add_ch(out, '"');
}

void trace_put_flags(struct buf *out, unsigned abi, unsigned set_id, uint64_t value)
{
	const struct sysc_set *set = sysc_set(abi, set_id);
	uint64_t left = value, part = set ? value & set->mask : 0;
	bool any = false, has_part = !set || !set->mask;
	for (size_t i = 0; set && i < set->cnt; i++) {
		const struct sysc_name *n = &set->names[i];
		bool is_part = set->mask && !(n->value & ~set->mask);
		bool hit = is_part ? !has_part && n->value == part : n->value ? (left & n->value) == n->value : !value;
		if (!hit)
			continue;
		has_part |= is_part;
		left &= is_part ? ~set->mask : ~n->value;
		if (any)
			buf_add_ch(out, '|');
		buf_add_str(out, n->name);
		any = true;
	}
	if (left || !any)
		buf_printf(out, left ? "%s0x%" PRIx64 : "%s%" PRIx64, any ? "|" : "", left);
}

void trace_put_enum(struct buf *out, unsigned abi, unsigned set_id, uint64_t value)
{
	const char *name = sysc_set_name(abi, set_id, value);
	if (!name) /* negative ones stand in the sets with 64 bits */
		name = sysc_set_name(abi, set_id, (uint64_t)(int64_t)(int32_t)value);
	if (name)
		buf_add_str(out, name);
	else
		buf_printf(out, value ? "0x%" PRIx64 : "%" PRIx64, value);
}

void trace_put_ptr(struct buf *out, uint64_t va)
{
	if (va)
		buf_printf(out, "0x%" PRIx64, va);
	else
		buf_add_str(out, "NULL");
}

void trace_put_signal(struct buf *out, int sig)
{
	const char *name = sig > 0 && sig < 32 ? sysc_set_name(TRACE_X86_64, SYSC_SET_signal, (uint64_t)sig) : NULL;
	if (name)
		buf_add_str(out, name);
	else if (sig == 32)
		buf_add_str(out, "SIGRTMIN");
	else if (sig > 32 && sig <= 64)
		buf_printf(out, "SIGRT_%d", sig - 32);
	else
		buf_printf(out, "%d", sig);
}

void trace_put_sigset(struct buf *out, uint64_t set)
{
	bool is_inverse = __builtin_popcountll(set) >= 43;
	bool any = false;
	if (is_inverse) {
		buf_add_ch(out, '~');
		set = ~set;
	}
	buf_add_ch(out, '[');
	for (int sig = 1; sig <= 64; sig++) {
		if (!(set >> (sig - 1) & 1))
			continue;
		if (any)
			buf_add_ch(out, ' ');
		struct buf name = {0};
		trace_put_signal(&name, sig);
		if (!name.failed)
			buf_add(out, name.data + 3, name.len - 3); /* without SIG */
		buf_fini(&name);
		any = true;
	}
	buf_add_ch(out, ']');
}

void trace_put_mode(struct buf *out, uint32_t mode)
{
	const char *type = sysc_set_name(TRACE_X86_64, SYSC_SET_file_type, mode & 0170000);
	static const struct {
		uint32_t bit;
		const char *name;
	} bits[] = {{04000, "S_ISUID"}, {02000, "S_ISGID"}, {01000, "S_ISVTX"}};
	if (!type) {
		buf_printf(out, "%#03o", mode);
		return;
	}
	buf_add_str(out, type);
	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		if (mode & bits[i].bit)
			buf_printf(out, "|%s", bits[i].name);
	buf_printf(out, "|0%03o", mode & 0777);
}

/* The kernel's wide encoding of device numbers (new_encode_dev). */
void trace_put_dev(struct buf *out, uint64_t dev)
{
	uint64_t major = (dev >> 8 & 0xfff) | (dev >> 32 & ~(uint64_t)0xfff), minor = (dev & 0xff) | (dev >> 12 & ~(uint64_t)0xff);
	buf_printf(out, major ? "makedev(0x%" PRIx64 : "makedev(%" PRIx64, major);
	buf_printf(out, minor ? ", 0x%" PRIx64 ")" : ", %" PRIx64 ")", minor);
}

void trace_put_wait_status(struct buf *out, uint32_t status)
{
	uint32_t sig = status & 0x7f;
	if (status == 0xffff) {
		buf_add_str(out, "{WIFCONTINUED(s)}");
	} else if ((status & 0xff) == 0x7f) {
		buf_add_str(out, "{WIFSTOPPED(s) && WSTOPSIG(s) == ");
		trace_put_signal(out, status >> 8 & 0x7f);
		if (status >> 15 & 1)
			buf_add_str(out, " | 0x80");
		if (status >> 16)
			buf_printf(out, "} | %u<<16", status >> 16);
		else
			buf_add_ch(out, '}');
	} else if (!sig) {
		buf_printf(out, "{WIFEXITED(s) && WEXITSTATUS(s) == %u}", status >> 8 & 0xff);
	} else {
		buf_add_str(out, "{WIFSIGNALED(s) && WTERMSIG(s) == ");
		trace_put_signal(out, (int)sig);
		buf_add_str(out, status & 0x80 ? " && WCOREDUMP(s)}" : "}");
	}
}

void trace_put_ioctl(struct buf *out, uint32_t cmd)
{
	static const char *const dirs[] = {"_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"};
	const char *name = sysc_set_name(TRACE_X86_64, SYSC_SET_ioctl, cmd);
	if (name) {
		buf_add_str(out, name);
		return;
	}
	buf_printf(out, "_IOC(%s", dirs[cmd >> 30]);
	uint32_t rest[] = {cmd >> 8 & 0xff, cmd & 0xff, cmd >> 16 & 0x3fff};
	for (size_t i = 0; i < ARRAY_LEN(rest); i++)
		buf_printf(out, rest[i] ? ", 0x%x" : ", %x", rest[i]);
	buf_add_ch(out, ')');
}

void trace_put_fd(struct buf *out, const struct tx *t, int32_t fd)
{
	buf_printf(out, "%d", fd);
	struct buf path = {0};
	if (t->o->fds && fd >= 0 && trace_fds_path(t->o->fds, t->ev->pid, fd, &path)) {
		buf_add_ch(out, '<');
		struct buf text = {0};
		trace_put_quoted(&text, (const uint8_t *)path.data, path.len, false);
		if (text.len >= 2 && !text.failed)
			buf_add(out, text.data + 1, text.len - 2);
		buf_fini(&text);
		buf_add_ch(out, '>');
	}
	buf_fini(&path);
}

void trace_put_clone_flags(struct buf *out, uint64_t flags, uint64_t exit_signal)
{
	if (flags)
		trace_put_flags(out, TRACE_X86_64, SYSC_SET_clone, flags);
	if (exit_signal) {
		if (flags)
			buf_add_ch(out, '|');
		trace_put_signal(out, (int)exit_signal);
	} else if (!flags) {
		buf_add_ch(out, '0');
	}
}
