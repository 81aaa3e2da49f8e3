# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DOUT=FILE.cpp -DHEADER=HEADER -DNAMESPACE=NAME -DTEXTS="kName=FILE,FILE;..." -P embed_text.cmake
# writes a source that defines each `const std::string_view kName` as its files, one after the other.
#
# Each byte is escaped, so that no text can end its literal.
set(code "// Made by embed_text.cmake.\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(text IN LISTS TEXTS)
  string(REGEX MATCH "^([^=]+)=(.*)$" matched "${text}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  set(bytes "")
  foreach(file IN LISTS files)
    file(READ "${file}" content HEX)
    string(APPEND bytes "${content}0a")
  endforeach()
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(REPLACE "\\x0a" "\\x0a\"\n\"" bytes "${bytes}")
  string(APPEND code "static constexpr char ${name}Bytes[] = \"${bytes}\";\n"
    "const std::string_view ${name}(${name}Bytes, sizeof ${name}Bytes - 1);\n")
endforeach()
file(WRITE ${OUT} "${code}}  // namespace ${NAMESPACE}\n")
