/* SPDX-License-Identifier: Apache-2.0 */
/* The image's build id, for ports whose linker script gives its note a name. */
#ifndef MINRPC_PORTS_BUILD_ID_H_
#define MINRPC_PORTS_BUILD_ID_H_

#include <stddef.h>
#include <stdint.h>

#include <minrpc/server.h>

/* The linker's layout of the note. */
struct minrpc_build_id_note {
	uint32_t name_size;
	uint32_t size;
	uint32_t type;
	char name[4];
	uint8_t id[MINRPC_BUILD_ID_MAX];
};

/* Missing if the linker script has no place for the note. */
extern const struct minrpc_build_id_note minrpc_build_id_note __attribute__((weak));

static inline void minrpc_give_build_id(struct minrpc_config *config)
{
	if (&minrpc_build_id_note != NULL && minrpc_build_id_note.size <= MINRPC_BUILD_ID_MAX) {
		config->build_id = minrpc_build_id_note.id;
		config->build_id_size = (uint8_t)minrpc_build_id_note.size;
	}
}

#endif
