// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that was written for Metall: metall FOLDER.
#include <iostream>
#include <metall/container/vector.hpp>
#include <metall/metall.hpp>

int main(int, char** argv) {
  using Numbers = metall::container::vector<int>;
  {
    metall::manager manager(metall::create_only, argv[1]);
    manager.construct<Numbers>("numbers")(manager.get_allocator())->push_back(5);
  }
  metall::manager manager(metall::open_only, argv[1]);
  std::cout << manager.find<Numbers>("numbers").first->at(0) << std::endl;
  return 0;
}
