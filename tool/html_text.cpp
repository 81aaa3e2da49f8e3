// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "html_text.hpp"

namespace farheap::tool {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      case '\n': result += c; break;
      default: result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

}  // namespace farheap::tool
