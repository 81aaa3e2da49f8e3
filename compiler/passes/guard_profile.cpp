// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard_profile.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <array>

namespace farheap::passes {
namespace {

constexpr const char kSection[] = "farheap_guards";
constexpr const char kFormat[] = "farheap guards 1";
constexpr std::size_t kMostGuards = 1u << 20;  // in one function; a larger number is a broken file

// Functions of one file only may share their names with those of others.
std::string name_of(const llvm::Function& function) {
  if (!function.hasLocalLinkage()) return function.getName().str();
  return (function.getParent()->getSourceFileName() + ";" + function.getName()).str();
}

llvm::Error wrong(llvm::StringRef path, std::size_t line, const llvm::Twine& why) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      llvm::Twine("-ffar-guard: cannot use '") + path + "', line " + llvm::Twine(line) + ": " + why +
          "; record it anew: compile and link with -ffar=guard -ffar-guard=record, and run the program");
}

struct Line {
  std::uint64_t ordinal = 0, guards = 0, passes = 0, misses = 0;
  llvm::StringRef name;
};

// "ORDINAL GUARDS PASSES MISSES NAME"
bool read_line(llvm::StringRef text, Line& line) {
  for (std::uint64_t* number : std::array{&line.ordinal, &line.guards, &line.passes, &line.misses}) {
    if (text.consumeInteger(10, *number) || !text.consume_front(" ")) return false;
  }
  line.name = text;
  return !text.empty() && line.ordinal < line.guards && line.guards <= kMostGuards && line.misses <= line.passes;
}

}  // namespace

llvm::Expected<GuardProfile> GuardProfile::read(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, true);
  if (!file) {
    return llvm::createStringError(
        file.getError(), llvm::Twine("-ffar-guard: cannot read '") + path + "': " + file.getError().message() +
                             "; it is made by a program compiled with -ffar-guard=record, when it ends");
  }
  GuardProfile profile;
  llvm::StringRef rest = (*file)->getBuffer();
  if (rest.empty()) return wrong(path, 1, "the file is empty");
  for (std::size_t number = 1; !rest.empty(); ++number) {
    llvm::StringRef text;
    std::tie(text, rest) = rest.split('\n');
    // Each run begins with it, and runs are added to one file.
    if (text == kFormat) continue;
    if (text.starts_with("farheap guards ")) return wrong(path, number, "a format of another version of Farheap");
    Line line;
    if (number == 1 || !read_line(text, line))
      return wrong(path, number, "not understood: '" + text.take_front(80) + "'");
    std::vector<FunctionProfile>& known = profile.functions_[line.name];
    auto found = llvm::find_if(known, [&](const FunctionProfile& one) { return one.size() == line.guards; });
    if (found == known.end()) found = known.insert(known.end(), FunctionProfile(line.guards));
    (*found)[line.ordinal].passes += line.passes;
    (*found)[line.ordinal].misses += line.misses;
  }
  return profile;
}

const FunctionProfile* GuardProfile::find(const llvm::Function& function, std::size_t guards, std::string& why) const {
  const auto known = functions_.find(name_of(function));
  if (known == functions_.end()) {
    why = "the profile does not know this function: all guards are made";
    return nullptr;
  }
  for (const FunctionProfile& one : known->second) {
    if (one.size() == guards) return &one;
  }
  why = "the profile knows " + std::to_string(known->second.front().size()) + " guards, and there are " +
        std::to_string(guards) + ": all are made; record it anew, with the same clang and options";
  return nullptr;
}

bool is_worth_a_guard(const GuardCount& count) { return count.misses > count.passes / 10000; }

llvm::GlobalVariable* make_guard_counters(llvm::Function& function, std::size_t guards) {
  llvm::Module& module = *function.getParent();
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  const auto make = [&](llvm::Type* type, llvm::Constant* first, bool constant, const char* name) {
    auto* made = new llvm::GlobalVariable(module, type, constant, llvm::GlobalValue::PrivateLinkage, first, name);
    // A function that several objects have is kept once: so is its record.
    if (function.hasComdat()) made->setComdat(function.getComdat());
    return made;
  };
  llvm::Constant* text = llvm::ConstantDataArray::getString(context, name_of(function));
  llvm::GlobalVariable* name = make(text->getType(), text, true, "farheap_guard_name");
  auto* type = llvm::ArrayType::get(llvm::ArrayType::get(word, 2), guards);
  llvm::GlobalVariable* counters = make(type, llvm::Constant::getNullValue(type), false, "farheap_guard_counters");
  counters->setAlignment(llvm::Align(8));
  // The layout is that of guards.c: name, guards, counters.
  llvm::StructType* layout = llvm::StructType::get(context, {pointer, word, pointer});
  llvm::GlobalVariable* record =
      make(layout, llvm::ConstantStruct::get(layout, {name, llvm::ConstantInt::get(word, guards), counters}), false,
           "farheap_guard_record");
  record->setSection(kSection);
  record->setAlignment(llvm::Align(8));
  llvm::appendToCompilerUsed(module, {record});
  return counters;
}

}  // namespace farheap::passes
