// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of the C library's functions, and of a few of libstdc++, by their names.
#include <llvm/ADT/StringMap.h>

#include "translate.hpp"

namespace farheap::passes {
namespace {

constexpr std::uint32_t kAll = ~0u;

// Names are given where the runtime's is not __farheap_ and the same.
struct Twin {
  llvm::StringRef name, far;
};
constexpr Twin kTwins[] = {
    {"malloc", "__farheap_malloc"},
    {"calloc", "__farheap_calloc"},
    {"realloc", "__farheap_realloc"},
    {"reallocarray", "__farheap_reallocarray"},
    {"free", "__farheap_free"},
    {"posix_memalign", "__farheap_posix_memalign"},
    {"aligned_alloc", "__farheap_aligned_alloc"},
    {"memalign", "__farheap_aligned_alloc"},
    {"valloc", "__farheap_valloc"},
    {"malloc_usable_size", "__farheap_malloc_usable_size"},
    {"strdup", "__farheap_strdup"},
    {"__strdup", "__farheap_strdup"},
    {"strndup", "__farheap_strndup"},
    // operator new, new[], delete, delete[]: as they are, nothrow, aligned, sized
    {"_Znwm", "__farheap_new"},
    {"_Znam", "__farheap_new"},
    {"_ZnwmRKSt9nothrow_t", "__farheap_new_nothrow"},
    {"_ZnamRKSt9nothrow_t", "__farheap_new_nothrow"},
    {"_ZnwmSt11align_val_t", "__farheap_new_aligned"},
    {"_ZnamSt11align_val_t", "__farheap_new_aligned"},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", "__farheap_new_aligned_nothrow"},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", "__farheap_new_aligned_nothrow"},
    {"_ZdlPv", "__farheap_delete"},
    {"_ZdaPv", "__farheap_delete"},
    {"_ZdlPvm", "__farheap_delete_sized"},
    {"_ZdaPvm", "__farheap_delete_sized"},
    {"_ZdlPvRKSt9nothrow_t", "__farheap_delete_nothrow"},
    {"_ZdaPvRKSt9nothrow_t", "__farheap_delete_nothrow"},
    {"_ZdlPvSt11align_val_t", "__farheap_delete_sized"},
    {"_ZdaPvSt11align_val_t", "__farheap_delete_sized"},
    {"_ZdlPvmSt11align_val_t", "__farheap_delete_sized_aligned"},
    {"_ZdaPvmSt11align_val_t", "__farheap_delete_sized_aligned"},
    // memory and strings
    {"memcpy", "__farheap_memmove"},
    {"memmove", "__farheap_memmove"},
    {"mempcpy", "__farheap_mempcpy"},
    {"memset", "__farheap_memset"},
    {"bzero", "__farheap_bzero"},
    {"bcopy", "__farheap_bcopy"},
    {"memcmp", "__farheap_memcmp"},
    {"bcmp", "__farheap_memcmp"},
    {"memchr", "__farheap_memchr"},
    {"strlen", "__farheap_strlen"},
    {"strnlen", "__farheap_strnlen"},
    {"strcpy", "__farheap_strcpy"},
    {"stpcpy", "__farheap_stpcpy"},
    {"strncpy", "__farheap_strncpy"},
    {"strcat", "__farheap_strcat"},
    {"strncat", "__farheap_strncat"},
    {"strcmp", "__farheap_strcmp"},
    {"strncmp", "__farheap_strncmp"},
    {"strchr", "__farheap_strchr"},
    {"index", "__farheap_strchr"},
    {"strrchr", "__farheap_strrchr"},
    {"rindex", "__farheap_strrchr"},
    {"strtok", "__farheap_strtok"},
    {"strtok_r", "__farheap_strtok_r"},
    {"__strtok_r", "__farheap_strtok_r"},
    {"strtol", "__farheap_strtol"},
    {"strtoll", "__farheap_strtol"},
    {"strtoul", "__farheap_strtoul"},
    {"strtoull", "__farheap_strtoul"},
    {"strtod", "__farheap_strtod"},
    {"strtof", "__farheap_strtof"},
    {"strtold", "__farheap_strtold"},
    // lists of arguments
    {"vprintf", "__farheap_vprintf"},
    {"vfprintf", "__farheap_vfprintf"},
    {"vdprintf", "__farheap_vdprintf"},
    {"vsprintf", "__farheap_vsprintf"},
    {"vsnprintf", "__farheap_vsnprintf"},
    {"vasprintf", "__farheap_vasprintf"},
    {"__vprintf_chk", "__farheap_vprintf_chk"},
    {"__vfprintf_chk", "__farheap_vfprintf_chk"},
    {"__vsprintf_chk", "__farheap_vsprintf_chk"},
    {"__vsnprintf_chk", "__farheap_vsnprintf_chk"},
};

// They read and write what their arguments point to, and nothing that lies there points on; they keep none of it.
struct Borrowing {
  llvm::StringRef names;  // divided by blanks
  std::uint32_t arguments;
};
constexpr Borrowing kBorrowing[] = {
    {"printf fprintf sprintf snprintf asprintf dprintf puts fputs perror scanf fscanf sscanf __isoc99_scanf "
     "__isoc99_fscanf "
     "__isoc99_sscanf __printf_chk __fprintf_chk __sprintf_chk __snprintf_chk fopen fdopen freopen remove rename "
     "fread fwrite fgets fread_unlocked fwrite_unlocked fputs_unlocked",
     kAll},
    {"read write pread pwrite pread64 pwrite64 open open64 openat creat stat lstat fstat access unlink mkdir rmdir "
     "chdir "
     "getcwd readlink link symlink chmod truncate gethostname pipe opendir system getenv setenv unsetenv mkstemp "
     "realpath",
     kAll},
    {"strcoll strcasecmp strncasecmp strspn strcspn strpbrk strstr strcasestr memrchr memmem strxfrm strerror_r "
     "strchrnul rawmemchr stpncpy memccpy strverscmp swab atoi atol atoll atof qsort bsearch rand_r",
     kAll},
    // What it hands to the comparison is handed on as it is.
    {"qsort_r", 1u << 0},
    {"time gmtime localtime gmtime_r localtime_r mktime timegm strftime asctime asctime_r ctime ctime_r clock_gettime "
     "gettimeofday nanosleep",
     kAll},
    {"frexp frexpf frexpl modf modff modfl remquo remquof remquol sincos sincosf sincosl lgamma_r lgammaf_r", kAll},
    {"mbstowcs wcstombs mbtowc wctomb", kAll},
    {"wcslen wcsnlen wcscpy wcpcpy wcsncpy wcpncpy wcscat wcsncat wcscmp wcsncmp wcscasecmp wcsncasecmp wcscoll "
     "wcsxfrm "
     "wcschr wcschrnul wcsrchr wcsstr wcsspn wcscspn wcspbrk wmemcpy wmempcpy wmemmove wmemset wmemcmp wmemchr "
     "wprintf fwprintf swprintf wscanf fwscanf swscanf __isoc99_wscanf __isoc99_fwscanf __isoc99_swscanf fgetws fputws",
     kAll},
    // The thread's number; what is handed to the thread is handed on as it is.
    {"pthread_create", 1u << 0},
    {"pthread_join", 1u << 1},
    {"pthread_setname_np", 1u << 1},
    // std::ostream: write, put text of a known length, << of a C string
    {"_ZNSo5writeEPKcl _ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l "
     "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
     1u << 1},
};

}  // namespace

llvm::StringRef far_name_of(llvm::StringRef name) {
  static const auto* const names = [] {
    auto* made = new llvm::StringMap<llvm::StringRef>();
    for (const Twin& twin : kTwins) (*made)[twin.name] = twin.far;
    return made;
  }();
  return names->lookup(name);
}

std::uint32_t borrowable(llvm::StringRef name) {
  static const auto* const masks = [] {
    auto* made = new llvm::StringMap<std::uint32_t>();
    for (const Borrowing& row : kBorrowing) {
      llvm::SmallVector<llvm::StringRef, 32> all;
      row.names.split(all, ' ', -1, false);
      for (const llvm::StringRef one : all) (*made)[one] = row.arguments;
    }
    return made;
  }();
  return masks->lookup(name);
}

}  // namespace farheap::passes
