// SPDX-License-Identifier: Apache-2.0
// C++ that needs no runtime: constructors of objects and of templates, references, namespaces.
#include <stdint.h>

namespace
{
template <typename T> struct counter {
	T value;
	explicit counter(T first) : value(first * FACTOR)
	{
	}
};

volatile int seed = 7;
counter<int> started(seed);
} // namespace

namespace own
{
int twice(const int &x)
{
	return 2 * x;
}
} // namespace own

int started_with(void)
{
	return started.value;
}

extern "C" int plain(int x)
{
	static int calls;

	return x + ++calls;
}
