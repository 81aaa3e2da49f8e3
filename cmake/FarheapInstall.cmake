# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What is installed: the command, the runtime it loads, the library with its headers, and how others find it
# (find_package(farheap), pkg-config farheap).
include(CMakePackageConfigHelpers)

set(FARHEAP_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/farheap)

install(TARGETS farheap RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET farheap_preload)
  install(TARGETS farheap_preload farheap_hints LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/farheap)
endif()
if(TARGET farheap-engines)
  install(TARGETS farheap-engines RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/farheap)
endif()
install(TARGETS farheap_library EXPORT farheap ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/farheap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT farheap NAMESPACE farheap:: DESTINATION ${FARHEAP_PACKAGE_FOLDER} FILE farheap-targets.cmake)

# Every pkg-config name the static library needs when it is linked.
set(FARHEAP_PKG_CONFIG_NAMES libxxhash)
set(FARHEAP_PKG_CONFIG_IMPORTS "pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)")
foreach(pair LIBURING:liburing LMDB:lmdb SODIUM:libsodium ZSTD:libzstd LZ4:liblz4)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 prefix)
  list(GET pair 1 package)
  if(FARHEAP_HAVE_${prefix})
    list(APPEND FARHEAP_PKG_CONFIG_NAMES ${package})
    string(APPEND FARHEAP_PKG_CONFIG_IMPORTS
      "\npkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${package})")
  endif()
endforeach()
set(FARHEAP_PKG_CONFIG_LIBS "")
if(FARHEAP_HAVE_BEARSSL)
  set(FARHEAP_PKG_CONFIG_LIBS " -lbearssl")
endif()
list(JOIN FARHEAP_PKG_CONFIG_NAMES ", " FARHEAP_PKG_CONFIG_REQUIRES)

set(FARHEAP_PASSES_INSTALLED ${CMAKE_INSTALL_LIBDIR}/farheap)
if(FARHEAP_HAVE_COMPILER)
  install(TARGETS farcc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_BINARY_DIR}/compiler/far++ DESTINATION ${CMAKE_INSTALL_BINDIR})  # a link, and copied as one
  foreach(major IN LISTS FARHEAP_LLVM_MAJORS)
    install(TARGETS farheap_passes_${major} LIBRARY DESTINATION ${FARHEAP_PASSES_INSTALLED})
  endforeach()
  install(TARGETS farheap_counts farheap_guards ARCHIVE DESTINATION ${FARHEAP_PASSES_INSTALLED})
  install(TARGETS farheap_contexts farheap_translate LIBRARY DESTINATION ${FARHEAP_PASSES_INSTALLED})
  install(FILES packaging/farcc.toolchain.cmake DESTINATION ${CMAKE_INSTALL_DATADIR}/farheap)
  install(FILES packaging/farheap-enable.cmake DESTINATION ${FARHEAP_PACKAGE_FOLDER})
endif()

configure_package_config_file(packaging/farheap-config.cmake.in ${PROJECT_BINARY_DIR}/farheap-config.cmake
  INSTALL_DESTINATION ${FARHEAP_PACKAGE_FOLDER} PATH_VARS FARHEAP_PASSES_INSTALLED)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/farheap-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/farheap-config.cmake ${PROJECT_BINARY_DIR}/farheap-config-version.cmake
  DESTINATION ${FARHEAP_PACKAGE_FOLDER})
# The prefix is only known when it is installed (cmake --install --prefix), so the .pc finds itself.
file(RELATIVE_PATH FARHEAP_PREFIX_FROM_PKG_CONFIG
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(packaging/farheap.pc.in ${PROJECT_BINARY_DIR}/farheap.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/farheap.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_BINARY_DIR}/tool/farheap.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/tool/farheap.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME farheap)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
