/* SPDX-License-Identifier: Apache-2.0 */

int use_stack(int size)
{
	volatile char bytes[size];

	for (int i = 0; i < size; i++) {
		bytes[i] = (char)i;
	}
	return bytes[size / 2];
}

__attribute__((noinline)) int use_much(int n)
{
	volatile int words[200];

	for (int i = 0; i < 200; i++) {
		words[i] = n + i;
	}
	return words[n];
}

int need_none(int n)
{
	return n + 1;
}

int use_below(int n)
{
	volatile int words[10];

	for (int i = 0; i < 10; i++) {
		words[i] = use_much(n);
	}
	return words[n];
}
