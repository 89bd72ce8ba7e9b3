/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <elf.h>
#include <link.h>
#include <stddef.h>

#include "build_id.h"

typedef ElfW(Phdr) elf_segment;
typedef ElfW(Nhdr) elf_note;

/* The program's own headers. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

const void *build_id(uint8_t most, uint8_t *size)
{
	const uint8_t *file = (const uint8_t *)&__ehdr_start;
	/*
	 * The base of the addresses in the headers: 0 in a program with fixed addresses.
	 */
	const uint8_t *image = __ehdr_start.e_type == ET_DYN ? file : NULL;
	const elf_segment *header = (const void *)(file + __ehdr_start.e_phoff);

	for (int i = 0; i < __ehdr_start.e_phnum; i++, header++) {
		const uint8_t *at = (const uint8_t *)((uintptr_t)image + header->p_vaddr);
		const uint8_t *end = at + header->p_memsz;

		while (header->p_type == PT_NOTE && at < end) {
			const elf_note *note = (const void *)at;
			const uint8_t *content = at + sizeof(*note) + ((note->n_namesz + 3U) & ~3U);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= most) {
				*size = (uint8_t)note->n_descsz;
				return content;
			}
			at = content + ((note->n_descsz + 3U) & ~3U);
		}
	}
	return NULL;
}
