// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/uri.hpp"

#include <gmock/gmock.h>

#include "base/uri_path.hpp"
#include "store/kinds.hpp"
#include "store/named_place.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

Error refusal(const std::string& uri) {
  auto opened = open_store(uri);
  EXPECT_FALSE(opened) << uri;
  if (opened) return {};
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << opened.error().message();
  return opened.error();
}

TEST(StoreUri, IsTakenApart) {
  auto uri = store::parse_uri("checksum+slow+file:/mnt/a:b+c?delay_us=5&slow.mb_s=7", store::vocabulary());
  ASSERT_TRUE(uri) << uri.error().message();
  EXPECT_THAT(uri->decorators, testing::ElementsAre("checksum", "slow"));
  EXPECT_EQ(uri->engine, "file");
  EXPECT_EQ(uri->place, "/mnt/a:b+c");
  EXPECT_EQ(uri->text(), "checksum+slow+file:/mnt/a:b+c");
  ASSERT_EQ(uri->parameters.size(), 2u);
  EXPECT_EQ(uri->parameters[1].kind, "slow");
  EXPECT_EQ(uri->parameters[1].value, "7");
}

TEST(StoreUri, APathIsWrittenWithEscapesAndReadWithout) {
  const std::string path = "/mnt/what?now/100%/%41/me@home/a,b/c&d/e#f";
  const auto uri = store::parse_uri(base::path_uri("file", path), store::vocabulary());
  ASSERT_TRUE(uri) << uri.error().message();
  EXPECT_EQ(uri->place, path);
  EXPECT_TRUE(uri->parameters.empty());
  EXPECT_EQ(uri->text(), base::path_uri("file", path));
  EXPECT_EQ(store::parse_uri("file:/100%/%4", store::vocabulary())->place, "/100%/%4") << "no escape: as it stands";
  EXPECT_FALSE(store::parse_uri("file:/etc/passwd%00x", store::vocabulary()));
  const auto inside = store::parse_uri(store::place_inside("file:/a%3Fb?slow.x=1", "c@d"), store::vocabulary());
  EXPECT_FALSE(inside) << "its parameter is unknown";
  EXPECT_EQ(store::place_inside("file:/a%3Fb", "c@d"), "file:/a%3Fb/c%40d");
}

TEST(StoreUri, AParametersValueMayHaveAnyByte) {
  const auto uri = store::parse_uri("redis://h?password_file=/a%26b%3Fc", store::vocabulary());
  ASSERT_TRUE(uri) << uri.error().message();
  const store::Parameters parameters(*uri, "redis");
  EXPECT_EQ(parameters.word("password_file", ""), "/a&b?c");
  EXPECT_EQ(parameters.text(), "password_file=/a%26b%3Fc");
}

TEST(StoreUri, MalformedOnesShowTheRightForm) {
  for (const char* uri : {"", "file", "nonsense", "+file:/tmp", "file+mem:", "checksum:", "://", "slow++mem:"}) {
    EXPECT_THAT(refusal(uri).remedy, HasSubstr("file:")) << uri;
  }
  EXPECT_THAT(refusal("/mnt/nvme").remedy, HasSubstr("file:/mnt/nvme"));
}

TEST(StoreUri, NearNamesAreSuggested) {
  EXPECT_THAT(refusal("fiel:/tmp").remedy, HasSubstr("did you mean file:?"));
  EXPECT_THAT(refusal("mme:").remedy, HasSubstr("did you mean mem:?"));
  EXPECT_THAT(refusal("lmbd:/x").remedy, HasSubstr("did you mean lmdb:?"));
  EXPECT_THAT(refusal("checksums+mem:").remedy, HasSubstr("did you mean checksum+?"));
  EXPECT_THAT(refusal("slow+mem:?delay=1").message(), HasSubstr("delay_us"));
  EXPECT_THAT(refusal("faulty+mem:?erorr=0.5").remedy, HasSubstr("did you mean error=?"));
}

TEST(StoreUri, ParametersAreRefusedWhereTheyMeanNothing) {
  EXPECT_THAT(refusal("mem:?delay_us=1").remedy, HasSubstr("takes no parameters"));
  EXPECT_THAT(refusal("slow+mem:?delay_us").why, HasSubstr("not a parameter"));
  EXPECT_THAT(refusal("slow+mem:?delay_us=fast").remedy, HasSubstr("delay_us=100"));
  EXPECT_THAT(refusal("slow+mem:?delay_us=-1").remedy, HasSubstr("delay_us=100"));
  EXPECT_THAT(refusal("slow+mem:?delay_us=1&delay_us=2").why, HasSubstr("twice"));
  EXPECT_THAT(refusal("faulty+mem:?error=1.5").why, HasSubstr("0 to 1"));
  EXPECT_THAT(refusal("faulty+mem:?error=nan").why, HasSubstr("0 to 1"));
  EXPECT_THAT(refusal("faulty+mem:?full_after=much").remedy, HasSubstr("64M"));
  EXPECT_THAT(refusal("compress+mem:?codec=gzip").remedy, HasSubstr("codec=zstd"));
  EXPECT_THAT(refusal("compress+mem:?codec=lz4&level=13").why, HasSubstr("1 to 12"));
  EXPECT_THAT(refusal("slow+slow+mem:").why, HasSubstr("twice"));
}

TEST(StoreUri, EnginesRefuseWrongPlaces) {
  EXPECT_THAT(refusal("mem:somewhere").remedy, HasSubstr("mem:"));
  EXPECT_THAT(refusal("file:").remedy, HasSubstr("file:DIR"));
  EXPECT_THAT(refusal("lmdb:").remedy, HasSubstr("lmdb:DIR"));
  auto nowhere = open_store("file:/no/such/folder/at/all");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  auto odd = open_store("mem:", {.block_bytes = 5000});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidArgument);
}

TEST(NamedPlace, IsWhereTheNameOfAStoreIs) {
  const auto named = [](std::string_view uri) {
    const auto result = store::with_name(uri, "own");
    return result ? *result : result.error().message();
  };
  EXPECT_EQ(named("mem:"), "mem:");
  EXPECT_EQ(named("file:/mnt/nvme"), "file:/mnt/nvme/own");
  EXPECT_EQ(named("checksum+lmdb:/data?sync=each"), "checksum+lmdb:/data/own?sync=each");
  EXPECT_EQ(named("redis://h"), "redis://h/0/own");
  EXPECT_EQ(named("redis://h:6379/7"), "redis://h:6379/7/own");
  EXPECT_EQ(named("redis://u@h:6379/7/app?timeout_ms=9"), "redis://u@h:6379/7/own?timeout_ms=9");
  EXPECT_EQ(named("redis:///run/redis/socket"), "redis:///run/redis/socket/0/own");
  EXPECT_EQ(named("redis:///run/redis/socket/7"), "redis:///run/redis/socket/7/own");
  EXPECT_EQ(named("redis:///run/redis/socket/7/app"), "redis:///run/redis/socket/7/own");
  EXPECT_EQ(named("checksum+redis+cluster://h1:1,h2:2/app"), "checksum+redis+cluster://h1:1,h2:2/own");
  EXPECT_EQ(named("bigtable://p/i/t"), "bigtable://p/i/t/own");
  EXPECT_EQ(named("etcd://h1,h2,h3/app"), "etcd://h1,h2,h3/own");
  EXPECT_EQ(named("datastore://p"), "datastore://p/own");
  EXPECT_EQ(named("spanner://p/i/d/app"), "spanner://p/i/d/own");
  EXPECT_THAT(named("bigtable://p/i"), HasSubstr("bigtable://PROJECT/INSTANCE/TABLE"));
  EXPECT_THAT(named("nowhere:x"), HasSubstr("there is no engine"));
}

TEST(StoreKinds, AreAllOpened) {
  ASSERT_FALSE(store_kinds().empty());
  TemporaryFolder folder;
  for (const auto& kind : store_kinds()) {
    // Servers, and engines in a process beside this one, have tests of their own.
    if (kind.form.find("://") != kind.form.npos || kind.scheme == "rocksdb") continue;
    EXPECT_FALSE(kind.summary.empty());
    EXPECT_THAT(std::string(kind.form), HasSubstr(std::string(kind.scheme)));
    const std::string place = kind.scheme == "mem" ? "" : folder.path();
    const std::string scheme(kind.scheme);
    EXPECT_TRUE(open_store(kind.decorator ? scheme + "+mem:" : scheme + ":" + place)) << scheme;
  }
}

}  // namespace
}  // namespace farheap::test
