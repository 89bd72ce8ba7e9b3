/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheme of pqm4, without arguments: its own names and sizes come from its api.h, with NAMESPACE
 * before each. -DKEM selects the operations of a key encapsulation; otherwise the scheme signs.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "api.h"

#define JOINED(space, name) space##name
#define JOIN(space, name)   JOINED(space, name)
#define OF(name)            JOIN(NAMESPACE, name)

/* In randombytes.c: headers of some schemes declare randombytes() with other types. */
void seed(uint32_t value);

/* Some schemes have functions for files, which nothing calls: there are no files. */
int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
	(void)path;
	(void)flags;
	return -1;
}

int close(int file);
int close(int file)
{
	(void)file;
	return -1;
}

ssize_t read(int file, void *bytes, size_t size);
ssize_t read(int file, void *bytes, size_t size)
{
	(void)file;
	(void)bytes;
	(void)size;
	return -1;
}

ssize_t write(int file, const void *bytes, size_t size);
ssize_t write(int file, const void *bytes, size_t size)
{
	(void)file;
	(void)bytes;
	(void)size;
	return -1;
}

off_t lseek(int file, off_t offset, int from);
off_t lseek(int file, off_t offset, int from)
{
	(void)file;
	(void)offset;
	(void)from;
	return -1;
}

uint8_t public_bytes[OF(CRYPTO_PUBLICKEYBYTES)];
static uint8_t secret_bytes[OF(CRYPTO_SECRETKEYBYTES)];

#ifdef KEM
uint8_t sent[OF(CRYPTO_CIPHERTEXTBYTES)];
uint8_t agreed[OF(CRYPTO_BYTES)];
static uint8_t received[OF(CRYPTO_BYTES)];

int generate(void)
{
	return OF(crypto_kem_keypair)(public_bytes, secret_bytes);
}

int produce(void)
{
	return OF(crypto_kem_enc)(sent, agreed, public_bytes);
}

int consume(void)
{
	return OF(crypto_kem_dec)(received, sent, secret_bytes);
}

int consume_other(const uint8_t other[sizeof(sent)])
{
	return OF(crypto_kem_dec)(received, other, secret_bytes);
}

/* Both sides have the same key. */
int accepted(void)
{
	return consume() == 0 && memcmp(agreed, received, sizeof(agreed)) == 0;
}

static void change(void)
{
	sent[sizeof(sent) / 3] ^= 4;
}
#else
#define MESSAGE 59 /* as in pqm4 */

uint8_t sent[MESSAGE + OF(CRYPTO_BYTES)];
static uint8_t message[MESSAGE], received[MESSAGE + OF(CRYPTO_BYTES)];
static size_t sent_size, received_size;

int generate(void)
{
	return OF(crypto_sign_keypair)(public_bytes, secret_bytes);
}

int produce(void)
{
	return OF(crypto_sign)(sent, &sent_size, message, MESSAGE, secret_bytes);
}

int consume(void)
{
	return OF(crypto_sign_open)(received, &received_size, sent, sent_size, public_bytes);
}

int produce_with(uint32_t value)
{
	seed(value);
	return produce();
}

/* The signature belongs to the message. */
int accepted(void)
{
	return consume() == 0 && received_size == MESSAGE &&
	       memcmp(received, message, MESSAGE) == 0;
}

/* The message is before the signature or behind it, which may have unused bytes. */
static void change(void)
{
	sent[0] ^= 4;
	sent[sent_size - 1] ^= 4;
}
#endif

/* A changed byte must be noticed. */
int notices_change(void)
{
	int noticed;

	change();
	noticed = !accepted();
	change();
	return noticed;
}
