// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metall's C interface over metall::manager. Nothing is thrown across it.
#include <metall/c_api/metall.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <metall/metall.hpp>
#include <new>
#include <utility>

namespace {

metall::manager& manager_of(metall_manager* manager) { return *reinterpret_cast<metall::manager*>(manager); }

template <class Tag>
metall_manager* make(const char* path, Tag tag) {
  try {
    metall::manager made(tag, path);
    if (made.check_sanity()) return reinterpret_cast<metall_manager*>(new metall::manager(std::move(made)));
  } catch (const std::exception& error) {
    metall::logger::out(metall::logger::level::error, __FILE__, __LINE__, error.what());
  }
  errno = ENOTRECOVERABLE;
  return nullptr;
}

template <class T>
T or_errno(T result, int why) {
  if (!result) errno = why;
  return result;
}

}  // namespace

metall_manager* metall_open(const char* path) { return make(path, metall::open_only); }
metall_manager* metall_open_read_only(const char* path) { return make(path, metall::open_read_only); }

metall_manager* metall_create(const char* path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    errno = EEXIST;
    return nullptr;
  }
  return make(path, metall::create_only);
}

void metall_close(metall_manager* manager) { delete &manager_of(manager); }
void metall_flush(metall_manager* manager) { manager_of(manager).flush(); }
bool metall_snapshot(metall_manager* manager, const char* dst_path) { return manager_of(manager).snapshot(dst_path); }
bool metall_remove(const char* path) { return or_errno(metall::manager::remove(path), EADDRINUSE); }

void* metall_malloc(metall_manager* manager, size_t size) {
  return or_errno(manager_of(manager).allocate(size), ENOMEM);
}
void metall_free(metall_manager* manager, void* ptr) { manager_of(manager).deallocate(ptr); }

void* metall_named_malloc(metall_manager* manager, const char* name, size_t size) {
  return or_errno(static_cast<void*>(manager_of(manager).construct<unsigned char>(name)[size]()), ENOMEM);
}
void* metall_find(metall_manager* manager, const char* name) {
  return or_errno(static_cast<void*>(manager_of(manager).find<unsigned char>(name).first), ENOENT);
}
bool metall_named_free(metall_manager* manager, const char* name) {
  return or_errno(manager_of(manager).destroy<unsigned char>(name), ENOENT);
}
