// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/codec.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#ifdef FARHEAP_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef FARHEAP_HAVE_LZ4
#include <lz4.h>
#include <lz4hc.h>
#endif

namespace farheap::store {
namespace {

constexpr std::size_t kHeader = 8;
constexpr std::byte kMark{'F'};

bool is_in_build(Codec codec) {
#ifdef FARHEAP_HAVE_ZSTD
  if (codec == Codec::kZstd) return true;
#endif
#ifdef FARHEAP_HAVE_LZ4
  if (codec == Codec::kLz4) return true;
#endif
  return false;
}

#ifdef FARHEAP_HAVE_ZSTD
// Contexts are large and slow to make, so they are kept for the next call. Not for each thread: the C library notes the
// destructor of a thread_local object under the loader's lock, which a program holds in a constructor of dlopen() while
// it waits for the page that is to be unpacked.
template <class Context, Context* (*make)(), std::size_t (*free)(Context*)>
class Contexts {
 public:
  // nullptr without memory.
  [[nodiscard]] Context* take() {
    for (auto& spare : spares_) {
      if (Context* found = spare.exchange(nullptr, std::memory_order_acquire)) return found;
    }
    return make();
  }
  void give_back(Context* context) {
    for (auto& spare : spares_) {
      Context* none = nullptr;
      if (spare.compare_exchange_strong(none, context, std::memory_order_release)) return;
    }
    free(context);
  }

 private:
  std::array<std::atomic<Context*>, 16> spares_{};
};

constinit Contexts<ZSTD_CCtx, ZSTD_createCCtx, ZSTD_freeCCtx> g_writers;
constinit Contexts<ZSTD_DCtx, ZSTD_createDCtx, ZSTD_freeDCtx> g_readers;
#endif

std::size_t pack_body(Codec codec, [[maybe_unused]] int level, [[maybe_unused]] std::span<const std::byte> block,
                      [[maybe_unused]] std::span<std::byte> into) {
  switch (codec) {
#ifdef FARHEAP_HAVE_ZSTD
    case Codec::kZstd: {
      auto* context = g_writers.take();
      if (context == nullptr) return 0;
      const auto size = ZSTD_compressCCtx(context, into.data(), into.size(), block.data(), block.size(), level);
      g_writers.give_back(context);
      return ZSTD_isError(size) ? 0 : size;
    }
#endif
#ifdef FARHEAP_HAVE_LZ4
    case Codec::kLz4: {
      const auto* from = reinterpret_cast<const char*>(block.data());
      auto* to = reinterpret_cast<char*>(into.data());
      const int bytes = static_cast<int>(block.size());
      const int room = static_cast<int>(into.size());
      const int size =
          level <= 1 ? LZ4_compress_default(from, to, bytes, room) : LZ4_compress_HC(from, to, bytes, room, level);
      return size > 0 ? static_cast<std::size_t>(size) : 0;
    }
#endif
    default: return 0;
  }
}

bool unpack_body(Codec codec, [[maybe_unused]] std::span<const std::byte> body,
                 [[maybe_unused]] std::span<std::byte> block) {
  switch (codec) {
#ifdef FARHEAP_HAVE_ZSTD
    case Codec::kZstd: {
      auto* context = g_readers.take();
      if (context == nullptr) return false;
      const auto size = ZSTD_decompressDCtx(context, block.data(), block.size(), body.data(), body.size());
      g_readers.give_back(context);
      return size == block.size();
    }
#endif
#ifdef FARHEAP_HAVE_LZ4
    case Codec::kLz4:
      return LZ4_decompress_safe(reinterpret_cast<const char*>(body.data()), reinterpret_cast<char*>(block.data()),
                                 static_cast<int>(body.size()),
                                 static_cast<int>(block.size())) == static_cast<int>(block.size());
#endif
    default: return false;
  }
}

}  // namespace

Codec default_codec() { return is_in_build(Codec::kZstd) ? Codec::kZstd : Codec::kLz4; }

Result<Codec> find_codec(std::string_view name) {
  const bool known = name == "zstd" || name == "lz4";
  const auto codec = name == "zstd" ? Codec::kZstd : Codec::kLz4;
  if (!known) {
    return fail(ErrorCode::kInvalidArgument, "no such codec", std::string(name), "it is not known",
                "write codec=zstd or codec=lz4");
  }
  if (!is_in_build(codec)) {
    return fail(ErrorCode::kUnavailable, "no such codec", std::string(name), "this build is without it",
                "configure with its library installed");
  }
  return codec;
}

Status check_level(Codec codec, int level) {
  const int most = codec == Codec::kZstd ? 19 : 12;
  if (level >= 1 && level <= most) return {};
  return fail(ErrorCode::kInvalidArgument, "no such level", std::to_string(level),
              fmt::format("this codec has levels from 1 to {}", most), "write level=1");
}

std::size_t pack(Codec codec, int level, std::span<const std::byte> block, std::span<std::byte> into) {
  if (into.size() <= kHeader) return 0;
  const std::size_t size = pack_body(codec, level, block, into.subspan(kHeader));
  if (size == 0) return 0;
  const auto size32 = static_cast<std::uint32_t>(size);
  const std::byte header[4] = {kMark, static_cast<std::byte>(codec), std::byte{0}, std::byte{0}};
  std::memcpy(into.data(), header, sizeof header);
  std::memcpy(into.data() + 4, &size32, sizeof size32);
  return kHeader + size;
}

bool unpack(std::span<const std::byte> packed, std::span<std::byte> block) {
  if (packed.size() < kHeader || packed[0] != kMark || packed[2] != std::byte{0} || packed[3] != std::byte{0}) {
    return false;
  }
  std::uint32_t size = 0;
  std::memcpy(&size, packed.data() + 4, sizeof size);
  if (size > packed.size() - kHeader) return false;
  return unpack_body(static_cast<Codec>(packed[1]), packed.subspan(kHeader, size), block);
}

}  // namespace farheap::store
