// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <farheap/farheap.hpp>

#include "api/heap_reader.hpp"

namespace farheap {

Result<HeapFacts> Heap::look(std::string_view uri) {
  const auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(place.error());
  auto reader = api::HeapReader::open(*place);
  if (!reader) return fail(std::move(reader.error()));
  auto versions = reader->versions();
  if (!versions) return fail(std::move(versions.error()));
  auto version = reader->version(place->snapshot);
  if (!version) return fail(std::move(version.error()));
  api::VersionBytes bytes = reader->bytes_of(*version);
  auto books = api::read_books(bytes);
  if (!books) return fail(std::move(books.error()));
  auto objects = api::read_objects(bytes, reader->pages_of(*version));
  if (!objects) return fail(std::move(objects.error()));

  HeapFacts facts;
  facts.uri = reader->store().describe();
  facts.id = reader->id();
  facts.format = books->format;
  facts.description = std::move(books->description);
  facts.address = version->base;
  facts.capacity_bytes = reader->capacity_bytes();
  facts.version = version->info;
  for (api::StoredVersion& one : *versions) facts.versions.push_back(std::move(one.info));
  facts.objects = std::move(*objects);
  return facts;
}

}  // namespace farheap
