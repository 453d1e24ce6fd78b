/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dw_api.h"

#include "base/dl.h"

struct err *dbg_dw_load(struct dw_api *ret)
{
#define DW(name) {"dwarf_" #name, (void **)&ret->name}
#define ELF(name) {#name, (void **)&ret->name}
	const struct dl_sym syms[] = {
		ELF(elf_version), ELF(elf_memory), ELF(elf_getscn), ELF(elf_getdata), ELF(elf_end),
		DW(begin_elf), DW(end), DW(setalt), DW(new_oom_handler), {"dwarf_errno", (void **)&ret->err_no}, DW(errmsg),
		DW(next_unit), DW(offdie), DW(dieoffset), DW(child), DW(siblingof), DW(tag), DW(srclang), DW(attr),
		DW(attr_integrate), DW(formstring), DW(formudata), DW(formsdata), DW(formblock), DW(formflag), DW(formaddr), DW(formref_die),
		DW(diename), DW(bytesize), DW(lowpc), DW(highpc), DW(ranges), DW(decl_file), DW(decl_line),
		DW(getsrclines), DW(onesrcline), DW(lineaddr), DW(lineno), DW(lineendsequence), DW(linesrc),
	};
#undef DW
#undef ELF
	/* The ELF functions are found through libdw, which needs libelf. */
	return dl_load("libdw.so.1", "reading DWARF", "libdw1", syms, ARRAY_LEN(syms));
}
