// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard_profile.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <algorithm>

namespace farheap::passes {
namespace {

constexpr const char kSection[] = "farheap_guards";
constexpr const char kFormat[] = "farheap guards 2";
constexpr const char kBegin[] = "farheap guards ";
constexpr const char kEnd[] = "end";
// That of guards.c. The name is what a linker says that was not told: it defines none.
constexpr const char kWriter[] = "__farheap_link_with_ffar_guard_record";
constexpr std::size_t kNamesInWarning = 3;
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
  std::uint64_t ordinal = 0, guards = 0, shape = 0, passes = 0, misses = 0;
  llvm::StringRef name;
};

// "ORDINAL GUARDS SHAPE PASSES MISSES NAME"
bool read_line(llvm::StringRef text, Line& line) {
  const auto read = [&text](std::uint64_t& number, unsigned base) {
    return !text.consumeInteger(base, number) && text.consume_front(" ");
  };
  if (!read(line.ordinal, 10) || !read(line.guards, 10) || !read(line.shape, 16) || !read(line.passes, 10) ||
      !read(line.misses, 10)) {
    return false;
  }
  line.name = text;
  return !text.empty() && line.ordinal < line.guards && line.guards <= kMostGuards && line.misses <= line.passes;
}

llvm::Error cut(llvm::StringRef path, std::size_t line, std::size_t first) {
  return wrong(path, line,
               "the run that begins in line " + llvm::Twine(first) +
                   " is cut: its program was killed while it wrote, or the disk was full; take lines " +
                   llvm::Twine(first) + " to " + llvm::Twine(line) + " out, which leaves the runs that are whole");
}

// FNV-1a, of words.
class Hash {
 public:
  void add(std::uint64_t word) {
    for (unsigned at = 0; at < 64; at += 8) hash_ = (hash_ ^ (word >> at & 0xff)) * 0x100000001b3u;
  }
  void add(llvm::StringRef text) {
    add(text.size());
    for (const char one : text) hash_ = (hash_ ^ static_cast<unsigned char>(one)) * 0x100000001b3u;
  }
  void add(const llvm::APInt& number) {
    add(number.getBitWidth());
    for (unsigned i = 0; i < number.getNumWords(); ++i) add(number.getRawData()[i]);
  }
  void add(const llvm::Type& type) {
    add(type.getTypeID());
    add(type.getScalarSizeInBits());
    if (const auto* many = llvm::dyn_cast<llvm::VectorType>(&type)) add(many->getElementCount().getKnownMinValue());
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

using Numbers = llvm::DenseMap<const llvm::Value*, std::uint64_t>;

// By what it is, never by where it lies in this compiler's memory. Local names are the compiler's to choose.
void add_operand(Hash& hash, const llvm::Value& operand, const Numbers& numbers) {
  if (const auto known = numbers.find(&operand); known != numbers.end()) {
    hash.add(known->second);
    return;
  }
  hash.add(operand.getValueID());
  if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(&operand)) {
    hash.add(number->getValue());
  } else if (const auto* fraction = llvm::dyn_cast<llvm::ConstantFP>(&operand)) {
    hash.add(fraction->getValueAPF().bitcastToAPInt());
  } else if (const auto* global = llvm::dyn_cast<llvm::GlobalValue>(&operand); global && !global->hasLocalLinkage()) {
    hash.add(global->getName());
  }
}

// The layout is that of guards.c. It refers to what writes it out, so that nothing counts for nobody.
llvm::GlobalVariable* make_record(llvm::Module& module, llvm::Constant* name, std::uint64_t guards, std::uint64_t shape,
                                  llvm::Constant* counters) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* writer = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(kWriter, llvm::Type::getInt8Ty(context)));
  writer->setVisibility(llvm::GlobalValue::HiddenVisibility);
  writer->setDSOLocal(true);
  llvm::StructType* layout = llvm::StructType::get(context, {pointer, word, word, pointer, pointer});
  llvm::Constant* first = llvm::ConstantStruct::get(
      layout, {name, llvm::ConstantInt::get(word, guards), llvm::ConstantInt::get(word, shape), counters, writer});
  auto* record =
      new llvm::GlobalVariable(module, layout, false, llvm::GlobalValue::PrivateLinkage, first, "farheap_guard_record");
  record->setSection(kSection);
  record->setAlignment(llvm::Align(8));
  llvm::appendToCompilerUsed(module, {record});
  return record;
}

}  // namespace

std::uint64_t shape_of(const llvm::Function& function) {
  Numbers numbers;
  const auto number = [&numbers](const llvm::Value& value) { numbers.insert({&value, numbers.size()}); };
  for (const llvm::Argument& argument : function.args()) number(argument);
  for (const llvm::BasicBlock& block : function) {
    number(block);
    for (const llvm::Instruction& instruction : block) {
      if (!instruction.isDebugOrPseudoInst()) number(instruction);
    }
  }
  Hash hash;
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      if (instruction.isDebugOrPseudoInst()) continue;
      hash.add(instruction.getOpcode());
      hash.add(*instruction.getType());
      if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) hash.add(compare->getPredicate());
      if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
        hash.add(*address->getSourceElementType());
      }
      hash.add(instruction.getNumOperands());
      for (const llvm::Use& operand : instruction.operands()) add_operand(hash, *operand, numbers);
    }
  }
  return hash.value();
}

llvm::Expected<GuardProfile> GuardProfile::read(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, true);
  if (!file) {
    return llvm::createStringError(
        file.getError(), llvm::Twine("-ffar-guard: cannot read '") + path + "': " + file.getError().message() +
                             "; it is made by a program compiled with -ffar-guard=record, when it ends");
  }
  GuardProfile profile;
  profile.path_ = path;
  llvm::StringRef rest = (*file)->getBuffer();
  if (rest.empty()) return wrong(path, 1, "the file is empty");
  std::size_t first = 0;  // line of the run that is read; 0: none
  std::size_t number = 1;
  for (; !rest.empty(); ++number) {
    const bool is_whole = rest.contains('\n');
    llvm::StringRef text;
    std::tie(text, rest) = rest.split('\n');
    if (!is_whole && first != 0) return cut(path, number, first);
    // Runs are added to one file.
    if (text == kFormat) {
      if (first != 0) return cut(path, number - 1, first);
      first = number;
      continue;
    }
    if (text.starts_with(kBegin)) return wrong(path, number, "a format of another version of Farheap");
    if (text == kEnd && first != 0) {
      first = 0;
      continue;
    }
    Line line;
    const bool is_read = first != 0 && read_line(text, line);
    // A run that comes after a cut one begins a line of its own.
    if (!is_read && first != 0 && rest.starts_with(kFormat)) return cut(path, number, first);
    if (!is_read) return wrong(path, number, "not understood: '" + text.take_front(80) + "'");
    profile.add(line.name, line.shape, line.guards, line.ordinal, {line.passes, line.misses});
  }
  if (first != 0) return cut(path, number - 1, first);
  return profile;
}

void GuardProfile::add(llvm::StringRef name, std::uint64_t shape, std::size_t guards, std::size_t ordinal,
                       const GuardCount& count) {
  std::vector<FunctionProfile>& known = functions_[name];
  auto found =
      llvm::find_if(known, [&](const FunctionProfile& one) { return one.shape == shape && one.guards == guards; });
  if (found == known.end()) {
    found = known.emplace(known.end());
    found->shape = shape;
    found->guards = guards;
  }
  GuardCount& sum = found->counts[ordinal];
  sum.passes += count.passes;
  sum.misses += count.misses;
  has_misses_ |= count.misses != 0;
}

const FunctionProfile* GuardProfile::find(const llvm::Function& function, std::uint64_t shape, std::size_t guards,
                                          std::string& why) {
  ++asked_;
  const auto known = functions_.find(name_of(function));
  if (known == functions_.end()) {
    why = "the profile does not know this function: all guards are made";
    return nullptr;
  }
  for (const FunctionProfile& one : known->second) {
    if (one.shape == shape && one.guards == guards) return &one;
  }
  others_.push_back(llvm::demangle(function.getName()));
  const std::size_t recorded = known->second.front().guards;
  why = recorded == guards
            ? std::string("the profile is of another function of this name")
            : "the profile knows " + std::to_string(recorded) + " guards, and there are " + std::to_string(guards);
  why += ": all are made; record it anew, with the same source, clang and options";
  return nullptr;
}

std::string GuardProfile::warning() const {
  const std::string start = "-ffar-guard: '" + path_ + "': ";
  if (!others_.empty()) {
    std::string names;
    for (std::size_t i = 0; i < std::min(others_.size(), kNamesInWarning); ++i) {
      names += (i == 0 ? "" : ", ") + others_[i];
    }
    if (others_.size() > kNamesInWarning) names += ", ...";
    return start + "recorded from other code than this, or by other options: " + std::to_string(others_.size()) +
           " of " + std::to_string(asked_) + " functions with guards do not match (" + names +
           "): all of their guards are made; record it anew, with the same source, clang and options";
  }
  if (has_misses_ || asked_ == 0) return {};
  return start +
         "no guard in it ever missed, so that guards are left out; record it under `farheap run --memory SIZE`, with "
         "as "
         "little memory as the program will have";
}

bool is_worth_a_guard(const GuardCount& count) { return count.misses > count.passes / 10000; }

llvm::GlobalVariable* make_guard_counters(llvm::Function& function, std::uint64_t shape, std::size_t guards) {
  llvm::Module& module = *function.getParent();
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
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
  llvm::GlobalVariable* record = make_record(module, name, guards, shape, counters);
  if (function.hasComdat()) record->setComdat(function.getComdat());
  return counters;
}

void note_that_guards_count(llvm::Module& module) {
  llvm::Constant* none = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(module.getContext()));
  make_record(module, none, 0, 0, none);
}

}  // namespace farheap::passes
