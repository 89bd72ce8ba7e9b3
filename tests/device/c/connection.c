/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a stack: a function in Python that is told of a connection sets the one that gets its
 * data. */
#include <stdint.h>

struct connection {
	int number;
	int (*received)(struct connection *from, const uint8_t *data);
};

static struct connection connection;
static const uint8_t buffer[1] = {9};

int added(int result, const uint8_t *data)
{
	return result + data[0];
}

void on_received(struct connection *of,
		 int (*received)(struct connection *from, const uint8_t *data))
{
	of->received = received;
}

int accepted(void (*accept)(struct connection *made, int (*visit)(int result, const uint8_t *data)),
	     int number)
{
	connection = (struct connection){number, 0};
	accept(&connection, added);
	return connection.received != 0 ? connection.received(&connection, buffer) : -1;
}
