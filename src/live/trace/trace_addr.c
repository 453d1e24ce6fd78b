/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses, socket options, messages and vectors of buffers. */
#include "live/trace/trace_int.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

static uint16_t be16(const uint8_t *p)
{
	return load_u16(p, true);
}

static void put_unix(struct buf *out, const uint8_t *p, size_t len)
{
	bool is_abstract = len > 0 && !p[0];
	size_t cnt = is_abstract ? len - 1 : strnlen((const char *)p, len);
	buf_add_str(out, ", sun_path=");
	if (is_abstract)
		buf_add_ch(out, '@');
	trace_put_quoted(out, p + is_abstract, cnt, false);
}

static void put_inet6(struct buf *out, const uint8_t *p)
{
	char text[INET6_ADDRSTRLEN];
	uint32_t flow = load_u32(p + 4, true);
	buf_printf(out, ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", &sin6_addr)", be16(p + 2), flow,
		   inet_ntop(AF_INET6, p + 8, text, sizeof(text)));
	buf_printf(out, ", sin6_scope_id=%u", load_u32(p + 24, false));
}

static void put_packet(struct buf *out, const uint8_t *p, size_t len)
{
	buf_printf(out, ", sll_protocol=htons(0x%x), sll_ifindex=%d, sll_hatype=%u, sll_pkttype=%u, sll_halen=%u, sll_addr=[", be16(p + 2),
		   (int)load_u32(p + 4, false), load_u16(p + 8, false), p[10], p[11]);
	for (size_t i = 0; i < p[11] && 12 + i < len; i++)
		buf_printf(out, i ? ", 0x%02x" : "0x%02x", p[12 + i]);
	buf_add_ch(out, ']');
}

/* The layouts are those of unix(7), ip(7), ipv6(7), netlink(7) and packet(7). */
void trace_put_sockaddr(struct buf *out, const uint8_t *p, size_t len)
{
	if (len < 2) {
		trace_put_quoted(out, p, len, true);
		return;
	}
	uint16_t family = load_u16(p, false);
	buf_add_str(out, "{sa_family=");
	trace_put_enum(out, TRACE_X86_64, SYSC_SET_af, family);
	if (family == AF_UNIX && len > 2)
		put_unix(out, p + 2, len - 2);
	else if (family == AF_INET && len >= 8)
		buf_printf(out, ", sin_port=htons(%u), sin_addr=inet_addr(\"%u.%u.%u.%u\")", be16(p + 2), p[4], p[5], p[6], p[7]);
	else if (family == AF_INET6 && len >= 28)
		put_inet6(out, p);
	else if (family == AF_NETLINK && len >= 12)
		buf_printf(out, ", nl_pid=%d, nl_groups=%08x", (int)load_u32(p + 4, false), load_u32(p + 8, false));
	else if (family == AF_PACKET && len >= 12)
		put_packet(out, p, len);
	else if (len > 2) {
		buf_add_str(out, ", sa_data=");
		trace_put_quoted(out, p + 2, len - 2, false);
	}
	buf_add_ch(out, '}');
}

void trace_put_sockopt(struct tx *t, const struct trace_slot *slot, uint64_t level, uint64_t optname)
{
	struct buf *out = t->out;
	const uint8_t *p = slot->data;
	if (level == SOL_SOCKET && optname == SO_LINGER && slot->len == 8)
		buf_printf(out, "{l_onoff=%d, l_linger=%d}", (int)load_u32(p, false), (int)load_u32(p + 4, false));
	else if (level == SOL_SOCKET && optname == SO_PEERCRED && slot->len == 12)
		buf_printf(out, "{pid=%d, uid=%d, gid=%d}", (int)load_u32(p, false), (int)load_u32(p + 4, false), (int)load_u32(p + 8, false));
	else if (slot->len == 4)
		buf_printf(out, "[%d]", (int)load_u32(p, false));
	else
		trace_put_buffer(t, out, p, slot->len, slot->status == TRACE_TRUNCATED);
}

/* The elements of `vec` (struct iovec, readv(2)) with what `data`, their buffers one behind the other, has for each; at most
 * `data_max` bytes of them count. */
void trace_put_iovec(struct tx *t, const struct trace_slot *vec, const struct trace_slot *data, uint64_t data_max)
{
	struct buf *out = t->out;
	uint64_t left = data_max, at = 0;
	buf_add_ch(out, '[');
	for (size_t i = 0; i < vec->len / 16; i++) {
		uint64_t base = load_u64(vec->data + 16 * i, false), len = load_u64(vec->data + 16 * i + 8, false);
		uint64_t wanted = MIN(len, left), part = data ? MIN(wanted, data->len - at) : 0;
		buf_add_str(out, i ? ", {iov_base=" : "{iov_base=");
		if (data && (part || !wanted) && base)
			trace_put_buffer(t, out, data->data + at, (size_t)part, part < wanted);
		else
			trace_put_ptr(out, base);
		buf_printf(out, ", iov_len=%" PRIu64 "}", len);
		at += part;
		left -= wanted;
	}
	buf_add_str(out, vec->status == TRACE_TRUNCATED ? ", ...]" : "]");
}

static void put_cmsg_data(struct buf *out, uint32_t level, uint32_t type, const uint8_t *p, size_t len)
{
	if (level == SOL_SOCKET && type == SCM_RIGHTS) {
		buf_add_ch(out, '[');
		for (size_t i = 0; i + 4 <= len; i += 4)
			buf_printf(out, i ? ", %d" : "%d", (int)load_u32(p + i, false));
		buf_add_ch(out, ']');
	} else if (level == SOL_SOCKET && type == SCM_CREDENTIALS && len >= 12) {
		buf_printf(out, "{pid=%d, uid=%d, gid=%d}", (int)load_u32(p, false), (int)load_u32(p + 4, false), (int)load_u32(p + 8, false));
	} else {
		trace_put_quoted(out, p, MIN(len, 64), false);
	}
}

/* Control messages, cmsg(3). */
static void put_control(struct buf *out, unsigned abi, const struct trace_slot *slot)
{
	size_t at = 0;
	bool any = false;
	buf_add_ch(out, '[');
	while (slot->len - at >= 16) {
		const uint8_t *p = slot->data + at;
		uint64_t len = load_u64(p, false);
		uint32_t level = load_u32(p + 8, false), type = load_u32(p + 12, false);
		if (len < 16)
			break;
		size_t body = MIN(len, slot->len - at) - 16;
		buf_printf(out, "%s{cmsg_len=%" PRIu64 ", cmsg_level=", any ? ", " : "", len - (abi == TRACE_I386 ? 4 : 0));
		trace_put_enum(out, TRACE_X86_64, SYSC_SET_sol, level);
		buf_add_str(out, ", cmsg_type=");
		if (level == SOL_SOCKET)
			trace_put_enum(out, TRACE_X86_64, SYSC_SET_scm, type);
		else
			buf_printf(out, "0x%x", type);
		if (body) {
			buf_add_str(out, ", cmsg_data=");
			put_cmsg_data(out, level, type, p + 16, body);
		}
		buf_add_ch(out, '}');
		any = true;
		if (len >= slot->len - at)
			break;
		at += MIN((len + 7) & ~(uint64_t)7, slot->len - at);
	}
	buf_add_ch(out, ']');
}

/* A struct user_msghdr: name, namelen, iov, iovlen, control, controllen, flags at 0, 8, 16, 24, 32, 40, 48. */
void trace_put_msghdr(struct tx *t, unsigned idx)
{
	const struct trace_event *ev = t->ev;
	struct buf *out = t->out;
	unsigned phase = t->s.a[idx].dir & SYSC_OUT ? TRACE_OUT : TRACE_IN;
	const struct trace_slot *self = trace_slot_find(ev, idx, phase, TRACE_PART_SELF);
	const struct trace_slot *before = trace_slot_find(ev, idx, TRACE_IN, TRACE_PART_SELF);
	const uint8_t *p = self->data;
	uint32_t name_len = load_u32(p + 8, false), was = before && before->len >= 12 ? load_u32(before->data + 8, false) : name_len;
	const struct trace_slot *name = trace_slot_find(ev, idx, phase, TRACE_PART_NAME);
	buf_add_str(out, "{msg_name=");
	if (name && name->len)
		trace_put_sockaddr(out, name->data, name->len);
	else
		trace_put_ptr(out, load_u64(p, false));
	if (was != name_len)
		buf_printf(out, ", msg_namelen=%u => %u, msg_iov=", was, name_len);
	else
		buf_printf(out, ", msg_namelen=%u, msg_iov=", name_len);
	const struct trace_slot *vec = trace_slot_find(ev, idx, phase, TRACE_PART_IOV);
	if (vec && vec->len)
		trace_put_iovec(t, vec, trace_slot_find(ev, idx, phase, TRACE_PART_DATA),
				phase == TRACE_OUT ? (uint64_t)MAX(ev->ret, 0) : UINT64_MAX);
	else
		trace_put_ptr(out, load_u64(p + 16, false));
	buf_printf(out, ", msg_iovlen=%" PRIu64, load_u64(p + 24, false));
	const struct trace_slot *control = trace_slot_find(ev, idx, phase, TRACE_PART_CONTROL);
	if (control && control->len) {
		buf_add_str(out, ", msg_control=");
		put_control(out, ev->abi, control);
	}
	buf_printf(out, ", msg_controllen=%" PRIu64 ", msg_flags=", load_u64(p + 40, false));
	trace_put_flags(out, ev->abi, SYSC_SET_msg, load_u32(p + 48, false));
	buf_add_ch(out, '}');
}
