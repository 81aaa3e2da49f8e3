# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# farheap_add_layer(NAME SOURCES a.cpp ... LINK target ...)
# makes the static library farheap_NAME, included from the root of src/ as "NAME/header.hpp".
function(farheap_add_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINK" ${ARGN})
  add_library(farheap_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(farheap_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(farheap_${name} PUBLIC ${LAYER_LINK})
endfunction()

# farheap_add_test(NAME [PLAIN] [SEPARATE] SOURCES a.cpp ... ONE_THREAD b.cpp ... LINK target ...): one GoogleTest program, its cases
# known to ctest. What is tested behind ONE_THREAD has one thread: nothing for the thread sanitizer, which leaves it out.
# Where units are not tested (FARHEAP_TEST_UNITS) only those programs are made that are PLAIN: no build with a sanitizer
# has them, or some of their cases. Files are compiled together: a file that shares names with another has a namespace of
# its own, or SEPARATE compiles each alone.
function(farheap_add_test name)
  cmake_parse_arguments(TEST "PLAIN;SEPARATE" "" "SOURCES;ONE_THREAD;LINK" ${ARGN})
  set(tested ON)
  if(FARHEAP_SANITIZE MATCHES "thread")
    if(NOT TEST_SOURCES)
      set(tested OFF)
    else()
      set(TEST_ONE_THREAD)
    endif()
  elseif(NOT FARHEAP_TEST_UNITS AND NOT TEST_PLAIN)
    set(tested OFF)
  endif()
  add_executable(${name} ${TEST_SOURCES} ${TEST_ONE_THREAD})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${TEST_LINK} GTest::gtest_main GTest::gmock)
  if(FARHEAP_UNITY AND NOT TEST_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  endif()
  if(tested)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
  else()
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
