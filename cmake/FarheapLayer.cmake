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

# farheap_add_test(NAME SOURCES a.cpp ... LINK target ...): one GoogleTest program, its cases known to ctest.
function(farheap_add_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINK} GTest::gtest_main GTest::gmock)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
