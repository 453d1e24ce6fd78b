// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <stdexcept>
#include <string>

namespace shapes {
struct Shape {
	virtual ~Shape() = default;
	virtual int area(int scale) const = 0;
};
struct Square : Shape {
	int side = 4;
	int area(int scale) const override { return side * side * scale; }
};
__attribute__((noinline)) int measure(const Shape &s, int scale)
{
	if (scale < 0)
		throw std::runtime_error("golden negative scale");
	return s.area(scale);
}
}

int main(int argc, char **)
{
	shapes::Square s;
	try {
		std::printf("%d\n", shapes::measure(s, argc - 2));
	} catch (const std::exception &e) {
		std::puts(e.what());
	}
	return 0;
}
