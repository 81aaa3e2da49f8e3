# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The benchmark programs and their sources: one program for every programs/NAME.cpp, and for every folder
# programs/NAME/ of several files. Sets FARHEAP_BENCH_NAMES and, for each, FARHEAP_BENCH_SOURCES_<NAME> and
# FARHEAP_BENCH_LIBRARIES_<NAME>. Used by bench/paging, which builds them, and by tests/bench, which breaks them.
set(FARHEAP_BENCH_NAMES)
file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true ${CMAKE_CURRENT_LIST_DIR}/programs/*)
foreach(entry IN LISTS entries)
  get_filename_component(name ${entry} NAME_WE)
  set(FARHEAP_BENCH_LIBRARIES_${name})
  if(IS_DIRECTORY ${entry})
    file(GLOB FARHEAP_BENCH_SOURCES_${name} CONFIGURE_DEPENDS ${entry}/*.cpp)
  elseif(entry MATCHES "\\.cpp$")
    set(FARHEAP_BENCH_SOURCES_${name} ${entry})
  else()
    continue()
  endif()
  list(APPEND FARHEAP_BENCH_NAMES ${name})
endforeach()

if(FARHEAP_HAVE_LIBQUANTUM)
  set(FARHEAP_BENCH_LIBRARIES_qft ${LIBQUANTUM_LIBRARY} OpenMP::OpenMP_CXX)
else()
  list(REMOVE_ITEM FARHEAP_BENCH_NAMES qft)
endif()
