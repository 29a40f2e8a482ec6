#include <iostream>

#include "tercel/tercel.h"

int main() {
  using namespace tercel;
  std::cout << "Tercel " << version() << "\n";
  const Tensor w = tensor({1.0, 2.0}).requires_grad_();
  const Tensor x = tensor({{1.0, 0.0}, {3.0, 4.0}});
  mul(x, w).sum().backward();
  std::cout << w.grad() << "\n";
  try {
    static_cast<void>(x.view({3}));
  } catch (const Error& error) {
    std::cout << error.kind() << ": " << error.what() << "\n";
  }
}
