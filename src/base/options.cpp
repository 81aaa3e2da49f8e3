// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/options.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/units.hpp"
#include "base/uri_path.hpp"

namespace farheap::base {
namespace {

constexpr std::string_view kPrefix = "FARHEAP_";

// Variables of this family that are no options; they are not reported as unknown.
constexpr std::string_view kOtherVariables[] = {"FARHEAP_BUILD",     "FARHEAP_CLOUD_SDK", "FARHEAP_ENCRYPT_KEY",
                                                "FARHEAP_FAR_CACHE", "FARHEAP_FAR_MODE",  "FARHEAP_FAR_STORE",
                                                "FARHEAP_HINTS"};

template <class T>
struct Word {
  std::string_view text;
  T value;
};

constexpr Word<Feature> kFeatureWords[] = {
    {"move", Feature::kMove},        {"wp_async", Feature::kWpAsync},           {"pagemap_scan", Feature::kPagemapScan},
    {"io_uring", Feature::kIoUring}, {"kernel_faults", Feature::kKernelFaults}, {"huge_pages", Feature::kHugePages},
};
constexpr Word<EvictionPolicy> kPolicyWords[] = {
    {"clock", EvictionPolicy::kClock}, {"period", EvictionPolicy::kPeriod}, {"s3fifo", EvictionPolicy::kS3Fifo}};
constexpr Word<OnFull> kFullWords[] = {{"pause", OnFull::kPause}, {"fail", OnFull::kFail}};
constexpr Word<StatsForm> kStatsWords[] = {{"text", StatsForm::kText}, {"json", StatsForm::kJson}};
constexpr Word<LogLevel> kLogWords[] = {
    {"error", LogLevel::kError}, {"warn", LogLevel::kWarn}, {"info", LogLevel::kInfo}, {"debug", LogLevel::kDebug}};
// The first word of each value is how it is printed.
constexpr Word<bool> kSwitchWords[] = {{"on", true},  {"off", false}, {"1", true},    {"0", false},
                                       {"yes", true}, {"no", false},  {"true", true}, {"false", false}};

template <class T, std::size_t N>
constexpr auto texts_of(const Word<T> (&words)[N]) {
  std::array<std::string_view, N> texts{};
  for (std::size_t i = 0; i < N; ++i) texts[i] = words[i].text;
  return texts;
}
constexpr auto kFeatureTexts = texts_of(kFeatureWords);
constexpr auto kPolicyTexts = texts_of(kPolicyWords);
constexpr auto kFullTexts = texts_of(kFullWords);
constexpr auto kStatsTexts = texts_of(kStatsWords);
constexpr auto kLogTexts = texts_of(kLogWords);
constexpr std::array<std::string_view, 2> kSwitchTexts{"on", "off"};

// A parser answers true, or false when the text is not of its form.
template <class T, std::size_t N>
bool parse_word(std::string_view text, const Word<T> (&words)[N], T& into) {
  for (const auto& word : words) {
    if (word.text == text) return into = word.value, true;
  }
  return false;
}

template <class T, std::size_t N>
std::string print_word(T value, const Word<T> (&words)[N]) {
  for (const auto& word : words) {
    if (word.value == value) return std::string(word.text);
  }
  return {};
}

bool parse_number(std::string_view text, std::uint32_t low, std::uint32_t high, std::uint32_t& into) {
  std::uint32_t value = 0;
  const char* const first = text.data();
  const char* const end = first + text.size();
  const auto [at, error] = std::from_chars(first, end, value);
  if (error != std::errc() || at != end || value < low || value > high) return false;
  into = value;
  return true;
}

bool parse_bytes(std::string_view text, std::uint64_t& into) {
  const auto size = parse_size(text);
  if (!size) return false;
  into = *size;
  return true;
}

// Exactly, in the largest unit that divides it: 512M, 4K, 1000.
std::string print_bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  std::string unit;
  for (char name : kUnits) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = name;
  }
  return std::to_string(bytes) + unit;
}

struct Size {
  static constexpr std::string_view kForm = "SIZE", kExample = "512M";
  static constexpr std::span<const std::string_view> kChoices{};
  static bool parse(std::string_view text, std::uint64_t& into) { return parse_bytes(text, into); }
  static std::string print(std::uint64_t value) { return print_bytes(value); }
};

struct BlockSize : Size {
  static constexpr std::string_view kForm = "4K|8K|...|2M", kExample = "64K";
  static bool parse(std::string_view text, std::uint64_t& into) {
    std::uint64_t value = 0;
    if (!parse_bytes(text, value) || !std::has_single_bit(value)) return false;
    if (value < kPageBytes || value > kHugePageBytes) return false;
    return into = value, true;
  }
};

struct Text {
  static constexpr std::string_view kForm = "TEXT", kExample = "text";
  static constexpr std::span<const std::string_view> kChoices{};
  static bool parse(std::string_view text, std::string& into) { return into = std::string(text), true; }
  static std::string print(const std::string& value) { return value; }
};

struct Uri : Text {
  static constexpr std::string_view kForm = "URI", kExample = "file:/var/tmp";
};

struct Features {
  static constexpr std::string_view kForm = "NAME[,NAME]...", kExample = "move,io_uring";
  static constexpr std::span<const std::string_view> kChoices{kFeatureTexts};
  static bool parse(std::string_view text, FeatureSet& into) {
    FeatureSet set;
    while (!text.empty()) {
      const auto comma = text.find(',');
      Feature one{};
      if (!parse_word(text.substr(0, comma), kFeatureWords, one)) return false;
      set.add(one);
      text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return into = set, true;
  }
  static std::string print(FeatureSet value) {
    std::string text;
    for (const auto& word : kFeatureWords) {
      if (!value.has(word.value)) continue;
      if (!text.empty()) text += ',';
      text += word.text;
    }
    return text;
  }
};

// NOLINTBEGIN(bugprone-macro-parentheses): the name of a type stands in none
#define FARHEAP_WORD_KIND(name, type, form, example, words, texts)                                 \
  struct name {                                                                                    \
    static constexpr std::string_view kForm = form, kExample = example;                            \
    static constexpr std::span<const std::string_view> kChoices{texts};                            \
    static bool parse(std::string_view text, type& into) { return parse_word(text, words, into); } \
    static std::string print(type value) { return print_word(value, words); }                      \
  };
// NOLINTEND(bugprone-macro-parentheses)
FARHEAP_WORD_KIND(Policy, EvictionPolicy, "period|clock|s3fifo", "s3fifo", kPolicyWords, kPolicyTexts)
FARHEAP_WORD_KIND(Full, OnFull, "pause|fail", "pause", kFullWords, kFullTexts)
FARHEAP_WORD_KIND(Stats, StatsForm, "text|json", "json", kStatsWords, kStatsTexts)
FARHEAP_WORD_KIND(Log, LogLevel, "error|warn|info|debug", "info", kLogWords, kLogTexts)
FARHEAP_WORD_KIND(Switch, bool, "on|off", "on", kSwitchWords, kSwitchTexts)
#undef FARHEAP_WORD_KIND

template <std::uint32_t kLow, std::uint32_t kHigh>
struct Counted {
  static constexpr std::span<const std::string_view> kChoices{};
  static bool parse(std::string_view text, std::uint32_t& into) { return parse_number(text, kLow, kHigh, into); }
  static std::string print(std::uint32_t value) { return std::to_string(value); }
};
struct Number : Counted<0, UINT32_MAX> {
  static constexpr std::string_view kForm = "NUMBER", kExample = "3";
};
struct Threads : Counted<1, 64> {
  static constexpr std::string_view kForm = "1..64", kExample = "4";
};
struct FewThreads : Counted<0, 8> {
  static constexpr std::string_view kForm = "0..8", kExample = "2";
};
struct Percent : Counted<0, 90> {
  static constexpr std::string_view kForm = "0..90 (per cent)", kExample = "10";
};

// ---- the table, once as data and once as code over the fields

constexpr OptionInfo kTable[] = {
#define FARHEAP_ROW(kind, key, initial, hidden, help) \
  OptionInfo{#key, initial, help, kind::kForm, kind::kExample, hidden, kind::kChoices},
    FARHEAP_OPTION_TABLE(FARHEAP_ROW)
#undef FARHEAP_ROW
};
constexpr std::size_t kOptionCount = std::size(kTable);

bool parse_into(Options& options, std::size_t index, std::string_view text) {
  std::size_t row = 0;
#define FARHEAP_PARSE(kind, key, initial, hidden, help) \
  if (row++ == index) return kind::parse(text, options.key);
  FARHEAP_OPTION_TABLE(FARHEAP_PARSE)
#undef FARHEAP_PARSE
  return false;
}

// "store.password_file" is another way to write store_password_file.
bool is_key(std::string_view key, std::string_view text) {
  return std::ranges::equal(key, text, [](char wanted, char c) { return wanted == (c == '.' ? '_' : c); });
}

std::size_t find_key(std::string_view key) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    if (is_key(kTable[i].key, key)) return i;
  }
  return kOptionCount;
}

std::string with_case(std::string_view text, int (*change)(int)) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return result;
}

// `shown` is the option as the user wrote it, up to the value: "FARHEAP_MEMORY=" or "--set memory=".
Status parse_named(Options& options, std::size_t index, std::string_view value, const std::string& shown) {
  if (parse_into(options, index, value)) return {};
  const OptionInfo& row = kTable[index];
  return fail(ErrorCode::kInvalidArgument, "wrong value", shown + std::string(value),
              std::string(row.form) + " was expected",
              (row.choices.empty() ? "write it as " : "for example ") + shown + std::string(row.example));
}

// The listed key nearest to a wrong one; empty if none is near.
std::string_view nearest_key(std::string_view key) {
  std::vector<std::string_view> keys;
  for (const auto& row : kTable) {
    if (!row.hidden) keys.push_back(row.key);
  }
  return nearest_word(key, keys);
}

Error unknown_key(std::string_view key) {
  const std::string_view near = nearest_key(key);
  return Error{ErrorCode::kInvalidArgument, "unknown option", "--set " + std::string(key), "there is none of this name",
               near.empty() ? "`farheap options` lists them all" : "did you mean " + std::string(near) + "?"};
}

Error unknown_variable(std::string_view name) {
  const std::string_view near = nearest_key(with_case(name.substr(kPrefix.size()), std::tolower));
  return Error{ErrorCode::kInvalidArgument, "unknown environment variable", std::string(name), "it has no effect",
               near.empty() ? "`farheap options` lists those that have"
                            : "did you mean " + kTable[find_key(near)].variable() + "?"};
}

bool is_disk_folder(const std::string& path) {
  constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  struct stat status{};
  struct statfs system{};
  if (path.empty() || path[0] != '/' || stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (statfs(path.c_str(), &system) != 0) return false;
  return system.f_type != kTmpfs && system.f_type != kRamfs;
}

std::string_view variable_of(const char* const* environment, std::string_view name) {
  for (auto at = environment; at != nullptr && *at != nullptr; ++at) {
    const std::string_view line = *at;
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

Status load_environment(LoadedOptions& loaded, const char* const* environment) {
  for (auto at = environment; at != nullptr && *at != nullptr; ++at) {
    const std::string_view line = *at;
    const auto equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    std::size_t index = 0;
    while (index < kOptionCount && kTable[index].variable() != name) ++index;
    if (index < kOptionCount) {
      const auto status = parse_named(loaded.options, index, line.substr(equals + 1), std::string(name) + "=");
      if (!status) return status;
      loaded.sources[index] = OptionSource::kEnvironment;
    } else if (std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) == std::end(kOtherVariables)) {
      loaded.warnings.push_back(unknown_variable(name));
    }
  }
  return {};
}

Status load_settings(LoadedOptions& loaded, std::span<const std::string> settings) {
  for (const auto& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos) {
      return fail(ErrorCode::kInvalidArgument, "wrong setting", "--set " + setting, "it has no value",
                  "write it as --set KEY=VALUE, for example --set read_ahead=8M");
    }
    const std::string_view key = std::string_view(setting).substr(0, equals);
    const auto status = set_option(loaded.options, key, std::string_view(setting).substr(equals + 1));
    if (!status) return status;
    loaded.sources[find_key(key)] = OptionSource::kCommandLine;
  }
  return {};
}

}  // namespace

Options::Options() {
  for (std::size_t i = 0; i < kOptionCount; ++i) parse_into(*this, i, kTable[i].default_text);
}

std::string_view to_string(OptionSource source) {
  switch (source) {
    case OptionSource::kDefault: return "default";
    case OptionSource::kEnvironment: return "environment";
    case OptionSource::kCommandLine: return "command line";
  }
  return {};
}

std::string OptionInfo::variable() const { return std::string(kPrefix) + with_case(key, std::toupper); }

std::span<const OptionInfo> option_table() { return kTable; }

std::string option_text(const Options& options, std::size_t index) {
  std::size_t row = 0;
#define FARHEAP_PRINT(kind, key, initial, hidden, help) \
  if (row++ == index) return kind::print(options.key);
  FARHEAP_OPTION_TABLE(FARHEAP_PRINT)
#undef FARHEAP_PRINT
  return {};
}

Status set_option(Options& options, std::string_view key, std::string_view value) {
  const std::size_t index = find_key(key);
  if (index == kOptionCount || kTable[index].hidden) return fail(unknown_key(key));
  return parse_named(options, index, value, "--set " + std::string(key) + "=");
}

Result<LoadedOptions> load_options(const char* const* environment, std::span<const std::string> settings) {
  LoadedOptions loaded;
  loaded.sources.assign(kOptionCount, OptionSource::kDefault);
  if (auto status = load_environment(loaded, environment); !status) return fail(status.error());
  if (auto status = load_settings(loaded, settings); !status) return fail(status.error());
  Options& options = loaded.options;
  if (options.block_min > options.block_max) {
    return fail(ErrorCode::kInvalidArgument, "wrong options",
                "block_min=" + print_bytes(options.block_min) + " block_max=" + print_bytes(options.block_max),
                "the smallest block is larger than the largest", "set block_min to at most block_max");
  }
  if (options.store.empty()) {
    const std::string folder(variable_of(environment, "TMPDIR"));
    options.store = path_uri("file", is_disk_folder(folder) ? folder : "/var/tmp");
  }
  return loaded;
}

std::vector<std::string> option_environment(const Options& options) {
  const Options initial;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    std::string text = option_text(options, i);
    if (text != option_text(initial, i)) lines.push_back(kTable[i].variable() + "=" + text);
  }
  return lines;
}

std::string_view nearest_word(std::string_view text, std::span<const std::string_view> words) {
  // Levenshtein's distance; a third of the letters may be wrong.
  std::size_t best = text.size() / 3 + 1;
  std::string_view nearest;
  for (std::string_view word : words) {
    std::vector<std::size_t> row(word.size() + 1);
    for (std::size_t j = 0; j <= word.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= text.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= word.size(); ++j) {
        const std::size_t change = diagonal + (text[i - 1] == word[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best) best = row.back(), nearest = word;
  }
  return nearest;
}

}  // namespace farheap::base
