/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Error and log texts: a printf with the conversions that they need.
 */
#include <minrpc/text.h>

struct out {
	char *at;
	char *last; /* last position for the terminator */
};

static void put(struct out *out, char c)
{
	if (out->at < out->last) {
		*out->at++ = c;
	}
}

static void put_string(struct out *out, const char *string)
{
	while (*string != '\0') {
		put(out, *string++);
	}
}

static void put_number(struct out *out, unsigned long value, unsigned int base)
{
	char digits[2U * sizeof(value) + 2U]; /* of an int in decimal, of a long in hexadecimal */
	int count = 0;

	do {
		unsigned int digit = (unsigned int)(value % base);

		digits[count++] = (char)(digit < 10U ? '0' + digit : 'a' - 10U + digit);
		value /= base;
	} while (value != 0U);
	while (count > 0) {
		put(out, digits[--count]);
	}
}

static void put_signed(struct out *out, int value)
{
	unsigned int magnitude = (unsigned int)value;

	if (value < 0) {
		put(out, '-');
		magnitude = 0U - magnitude;
	}
	put_number(out, magnitude, 10U);
}

void minrpc_text_list(char *buffer, uint32_t capacity, const char *format, va_list list)
{
	struct out out = {buffer, buffer + capacity - 1U};

	for (; *format != '\0'; format++) {
		if (*format != '%') {
			put(&out, *format);
			continue;
		}
		switch (*++format) {
		case 's':
			put_string(&out, va_arg(list, const char *));
			break;
		case 'u':
			put_number(&out, va_arg(list, unsigned int), 10U);
			break;
		case 'x':
			put_number(&out, va_arg(list, unsigned int), 16U);
			break;
		case 'l':
			format++;
			put_number(&out, va_arg(list, unsigned long), 16U);
			break;
		case 'd':
			put_signed(&out, va_arg(list, int));
			break;
		default:
			put(&out, *format);
			break;
		}
	}
	*out.at = '\0';
}

void minrpc_text(char *buffer, uint32_t capacity, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	minrpc_text_list(buffer, capacity, format, list);
	va_end(list);
}
