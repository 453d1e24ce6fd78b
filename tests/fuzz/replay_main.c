/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() for a fuzz target outside libFuzzer, so that the corpus runs in the ordinary tests under any compiler:
 *   fuzz_NAME [--mutate N] [--seed S] [--need-both] FILE|FOLDER...
 * Runs every file, then N mutants of each, made from the seed alone. A target that tells good input from bad adds to
 * fuzz_accepted or fuzz_rejected; --need-both fails when either stayed 0, because a mutation test that saw no
 * rejection tested nothing.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

unsigned long fuzz_accepted;
unsigned long fuzz_rejected;

static uint64_t rng_state;
static unsigned long mutant_cnt;
static unsigned long input_cnt;
static unsigned long run_cnt;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

/* One random edit in place: a bit, a byte, an interesting word, a run of one byte, a copied run. */
static void mutate_once(uint8_t *p, size_t len)
{
	static const uint64_t words[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
					 0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX};
	size_t at = rng() % len;
	/* Headers matter more than what follows. */
	if (rng() % 2)
		at %= 256;
	at %= len;
	size_t room = len - at;
	size_t from = rng() % len;
	switch (rng() % 5) {
	case 0:
		p[at] ^= (uint8_t)(1u << (rng() % 8));
		break;
	case 1:
		p[at] = (uint8_t)rng();
		break;
	case 2: {
		uint64_t w = words[rng() % (sizeof(words) / sizeof(words[0]))];
		size_t n = (size_t)1 << (rng() % 4);
		memcpy(p + at, &w, n < room ? n : room);
		break;
	}
	case 3:
		memset(p + at, (int)(rng() & 0xff), room < 16 ? room : 1 + rng() % 16);
		break;
	default: {
		size_t n = 1 + rng() % 32;
		n = n < room ? n : room;
		n = n < len - from ? n : len - from;
		memmove(p + at, p + from, n);
	}
	}
}

static void run_exact(const uint8_t *bytes, size_t len)
{
	/* An allocation of exactly the input's size lets the sanitizer see a read past it. */
	uint8_t *copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	run_cnt++;
}

static void run_file(const char *path, size_t len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(len ? len : 1);
	if (!f || !bytes || fread(bytes, 1, len, f) != len)
		abort();
	fclose(f);
	input_cnt++;
	run_exact(bytes, len);
	uint8_t *mutant = malloc(len ? len : 1);
	for (unsigned long i = 0; mutant && len && i < mutant_cnt; i++) {
		memcpy(mutant, bytes, len);
		for (unsigned n = 1 + (unsigned)(rng() % 8); n; n--)
			mutate_once(mutant, len);
		run_exact(mutant, rng() % 8 ? len : rng() % len);
	}
	free(mutant);
	free(bytes);
}

static void run_path(const char *path, int depth)
{
	struct stat st;
	if (stat(path, &st)) {
		perror(path);
		exit(2);
	}
	if (S_ISREG(st.st_mode))
		run_file(path, (size_t)st.st_size);
	if (!S_ISDIR(st.st_mode) || depth > 8)
		return;
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char sub[4096];
		snprintf(sub, sizeof(sub), "%s/%s", path, list[i]->d_name);
		if (list[i]->d_name[0] != '.')
			run_path(sub, depth + 1);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

int main(int argc, char **argv)
{
	bool need_both = false;
	uint64_t seed = 1;
	int i = 1;
	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--need-both"))
			need_both = true;
		else if (!strcmp(argv[i], "--mutate") && i + 1 < argc)
			mutant_cnt = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 10);
		else
			return 2;
	}
	rng_state = seed * 0x9e3779b97f4a7c15 | 1;
	for (; i < argc; i++)
		run_path(argv[i], 0);
	bool has_both = fuzz_accepted && fuzz_rejected;
	bool is_good = input_cnt && (!need_both || has_both);
	printf("%s - %lu inputs, %lu runs, %lu accepted, %lu rejected\n", is_good ? "ok" : "not ok", input_cnt, run_cnt,
	       fuzz_accepted, fuzz_rejected);
	return is_good ? 0 : 1;
}
