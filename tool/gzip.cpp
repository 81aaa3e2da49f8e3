// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gzip.hpp"

#ifdef FARHEAP_HAVE_ZLIB
#include <zlib.h>

#include <algorithm>
#include <limits>
#endif

namespace farheap::tool {

#ifdef FARHEAP_HAVE_ZLIB

namespace {

constexpr int kGzipOf32K = 15 + 16;  // zlib's words for a window of 2^15 bytes in a gzip file
constexpr int kMemoryLevel = 8;      // zlib's own
constexpr std::size_t kPieceBytes = 1u << 16;

}  // namespace

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipOf32K, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::string(bytes);
  }
  std::string out, piece(kPieceBytes, '\0'), input(bytes);
  std::size_t at = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {  // counted in 32 bits
      const std::size_t taken = std::min<std::size_t>(input.size() - at, std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(input.data() + at);
      stream.avail_in = static_cast<uInt>(taken);
      at += taken;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = deflate(&stream, at == input.size() ? Z_FINISH : Z_NO_FLUSH);
    out.append(piece, 0, piece.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

#else

std::string gzipped(std::string_view bytes) { return std::string(bytes); }

#endif

}  // namespace farheap::tool
