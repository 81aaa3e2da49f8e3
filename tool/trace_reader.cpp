// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trace_recorder.hpp"
#include "whole_file.hpp"

namespace farheap::tool {
namespace {

using nlohmann::json;

constexpr const char* kRemedy = "record it anew with `farheap run --trace FILE -- PROGRAM`";

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Status add_line(std::string_view line) {
    ++number_;
    if (trace_.end) return wrong("something follows the end");
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) return wrong("it is no JSON object");
    if (number_ == 1) return take_head(object);
    return object.contains("end") ? take_end(object) : take_sample(object);
  }

  Result<Trace> result(bool cut_line) {
    if (number_ == 0) ++number_;
    if (trace_.command.empty()) return fail(wrong("the first line is missing").error());
    if (trace_.samples.empty()) return fail(wrong("there is no sample").error());
    trace_.cut_line = cut_line;
    return std::move(trace_);
  }

 private:
  Status wrong(const std::string& why) const {
    return fail(ErrorCode::kCorrupt, "cannot read the trace", fmt::format("{}, line {}", name_, number_), why, kRemedy);
  }

  Status take_head(const json& object) {
    const auto is = [&](const char* name, auto check) { return object.contains(name) && (object[name].*check)(); };
    if (!is("kind", &json::is_string) || object["kind"] != kTraceKind || !is("format", &json::is_number_unsigned)) {
      return wrong("it is not a trace");
    }
    if (object["format"].get<std::uint64_t>() > kTraceFormat) {
      return fail(ErrorCode::kUnavailable, "cannot read the trace", name_,
                  fmt::format("its format is {}, this version reads up to {}", object["format"].get<std::uint64_t>(),
                              kTraceFormat),
                  "use the farheap that recorded it, or a newer one");
    }
    if (!is("command", &json::is_array) || !is("store", &json::is_string) || !is("pid", &json::is_number_unsigned)) {
      return wrong("\"command\", \"store\" or \"pid\" is missing");
    }
    for (const auto& word : object["command"]) {
      if (!word.is_string()) return wrong("\"command\" is not a list of words");
      trace_.command.push_back(word.get<std::string>());
    }
    if (trace_.command.empty()) return wrong("\"command\" is empty");
    trace_.store = object["store"].get<std::string>();
    trace_.pid = static_cast<int>(object["pid"].get<std::uint64_t>() & 0x7fffffff);
    return {};
  }

  Status take_sample(const json& object) {
    auto sample = parse_sample(object);
    if (!sample) return wrong(sample.error().why);
    if (!trace_.samples.empty() && sample->seconds < trace_.last().seconds) return wrong("its time runs backwards");
    if (!trace_.samples.empty() && !sample->counters.not_below(trace_.last().counters)) {
      return wrong("a counter runs backwards");
    }
    trace_.samples.push_back(std::move(*sample));
    return {};
  }

  Status take_end(const json& object) {
    const auto number = [&](const char* name) -> std::optional<int> {
      if (!object.contains(name) || !object[name].is_number_unsigned()) return {};
      const auto value = object[name].get<std::uint64_t>();
      return value > 255 ? std::optional<int>() : static_cast<int>(value);
    };
    const auto status = number("exit_status");
    const auto signal = number("signal");
    if (!status || !signal) return wrong("\"exit_status\" or \"signal\" is not a number up to 255");
    trace_.end = Trace::End{*status, *signal};
    return {};
  }

  const std::string& name_;
  std::size_t number_ = 0;  // of the line
  Trace trace_;
};

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  Reader reader(name);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // the recorder was killed while it wrote
    if (Status added = reader.add_line(text.substr(0, end)); !added) return fail(std::move(added.error()));
    text.remove_prefix(end + 1);
  }
  return reader.result(!text.empty());
}

Result<Trace> read_trace(const std::string& path) {
  const auto text = whole_file(path, "cannot read the trace", "`farheap run --trace FILE -- PROGRAM` records one");
  if (!text) return fail(text.error());
  return parse_trace(*text, path);
}

}  // namespace farheap::tool
