// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What programs write with <immintrin.h> and clang keeps as intrinsics of x86: unaligned loads, masked loads and stores
// of AVX, gathers and scatters. They are known by name, because versions of LLVM number them differently and drop some.
//
// Invariant: what stands in place of an intrinsic touches no byte that the intrinsic would not have touched.
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::Value;

constexpr llvm::Align kUnaligned;  // 1

// Behind "llvm.x86."; empty if it is another machine's, or none's.
llvm::StringRef name_of(const llvm::IntrinsicInst& call) {
  llvm::StringRef name = call.getCalledFunction()->getName();
  return name.consume_front("llvm.x86.") ? name : llvm::StringRef();
}

class Lowering {
 public:
  explicit Lowering(llvm::IntrinsicInst& call) : call_(call), at_(&call) {}

  void run() {
    const llvm::StringRef name = name_of(call_);
    if (name == "sse3.ldu.dq" || name == "avx.ldu.dq.256") {
      if (!is_near(call_.getArgOperand(0))) replace(at_.CreateAlignedLoad(call_.getType(), argument(0), kUnaligned));
    } else if (name.starts_with("avx.maskload.") || name.starts_with("avx2.maskload.")) {
      if (!is_near(argument(0))) replace(masked_load(argument(0), lanes_on(argument(1))));
    } else if (name.starts_with("avx.maskstore.") || name.starts_with("avx2.maskstore.")) {
      if (!is_near(argument(0))) replace(masked_store(argument(0), lanes_on(argument(1)), argument(2)));
    } else if (name == "sse2.maskmov.dqu") {
      if (!is_near(argument(2))) replace(masked_store(argument(2), lanes_on(argument(1)), argument(0)));
    } else if (name.starts_with("avx2.gather.") || name.starts_with("avx512.mask.gather")) {
      if (!is_near(argument(1))) replace(gather());
    } else if (name.starts_with("avx512.mask.scatter")) {
      if (!is_near(argument(0))) replace(scatter());
    }
  }

 private:
  Value* argument(unsigned number) { return call_.getArgOperand(number); }

  void replace(Value* result) {
    if (!call_.getType()->isVoidTy()) call_.replaceAllUsesWith(result);
    call_.eraseFromParent();
  }

  static unsigned lanes_of(const Value* value) {
    return llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements();
  }

  // A lane is on if its mask is negative, or if its bit is set.
  Value* lanes_on(Value* mask) {
    auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
    if (type->getElementType()->isIntegerTy(1)) return mask;
    auto* words = llvm::VectorType::getInteger(type);
    return at_.CreateICmpSLT(at_.CreateBitCast(mask, words), llvm::Constant::getNullValue(words));
  }

  Value* masked_load(Value* pointer, Value* on) {
    return at_.CreateMaskedLoad(call_.getType(), pointer, kUnaligned, on,
                                llvm::Constant::getNullValue(call_.getType()));
  }

  Value* masked_store(Value* pointer, Value* on, Value* value) {
    return at_.CreateMaskedStore(value, pointer, kUnaligned, on);
  }

  // The first lanes; more than there are: zeros behind them.
  Value* resized(Value* value, unsigned lanes) {
    const unsigned there = lanes_of(value);
    if (there == lanes) return value;
    llvm::SmallVector<int, 16> order;
    for (unsigned lane = 0; lane < lanes; ++lane) order.push_back(static_cast<int>(std::min(lane, there)));
    return at_.CreateShuffleVector(value, llvm::Constant::getNullValue(value->getType()), order);
  }

  // Bytes are counted: base + index * scale.
  Value* places(Value* base, Value* index, Value* scale, unsigned lanes) {
    auto* words = llvm::FixedVectorType::get(at_.getInt64Ty(), lanes);
    Value* wide = at_.CreateSExt(resized(index, lanes), words);
    Value* factor = at_.CreateVectorSplat(lanes, at_.CreateZExt(scale, at_.getInt64Ty()));
    return at_.CreateGEP(at_.getInt8Ty(), base, at_.CreateMul(wide, factor));
  }

  // Of source, base, index, mask, scale. Where there are fewer indices than lanes, the lanes behind them are zeros.
  Value* gather() {
    const unsigned all = lanes_of(argument(0));
    const unsigned lanes = std::min(all, lanes_of(argument(2)));
    auto* type = llvm::FixedVectorType::get(call_.getType()->getScalarType(), lanes);
    Value* found = at_.CreateMaskedGather(type, places(argument(1), argument(2), argument(4), lanes), kUnaligned,
                                          resized(lanes_on(argument(3)), lanes), resized(argument(0), lanes));
    return resized(found, all);
  }

  // Of base, mask, index, value, scale.
  Value* scatter() {
    const unsigned lanes = std::min(lanes_of(argument(3)), lanes_of(argument(2)));
    return at_.CreateMaskedScatter(resized(argument(3), lanes), places(argument(0), argument(2), argument(4), lanes),
                                   kUnaligned, resized(lanes_on(argument(1)), lanes));
  }

  llvm::IntrinsicInst& call_;
  llvm::IRBuilder<> at_;
};

}  // namespace

bool is_of_the_cache(const llvm::IntrinsicInst& call) {
  static constexpr llvm::StringLiteral kNames[] = {"sse2.clflush", "clflushopt", "clwb", "cldemote"};
  return llvm::is_contained(kNames, name_of(call));
}

void lower_x86(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> all;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call != nullptr && !name_of(*call).empty()) all.push_back(call);
    }
  }
  for (llvm::IntrinsicInst* call : all) Lowering(*call).run();
}

}  // namespace farheap::passes
