# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake --toolchain PREFIX/share/farheap/farcc.toolchain.cmake ...
# builds a project with farcc and far++. They are looked for from this file on, so that an installation can be moved.
get_filename_component(farheap_prefix "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(CMAKE_C_COMPILER "${farheap_prefix}/bin/farcc")
set(CMAKE_CXX_COMPILER "${farheap_prefix}/bin/far++")
foreach(farheap_compiler IN ITEMS "${CMAKE_C_COMPILER}" "${CMAKE_CXX_COMPILER}")
  if(NOT EXISTS "${farheap_compiler}")
    message(FATAL_ERROR "Farheap's toolchain file: there is no ${farheap_compiler}; install Farheap with its compiler, "
      "and use the toolchain file that was installed with it")
  endif()
endforeach()
unset(farheap_compiler)
unset(farheap_prefix)
