// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masked loads and stores, gathers, scatters, and those that pack, lane by lane: each lane is then an access like
// others.
//
// Invariant: lanes come in their order, which is what counts where two lanes of a scatter are at one place.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::Value;

// What the operands are; where they stand differs between versions of LLVM, the alignment among them.
struct Masked {
  Value* pointer = nullptr;  // or a vector of them
  Value* mask = nullptr;
  Value* value = nullptr;  // what is stored, or what lanes that are off have
  llvm::FixedVectorType* type = nullptr;
  bool loads = false;
  bool packs = false;  // lanes that are on are neighbours in memory
};

std::optional<Masked> masked(llvm::IntrinsicInst& call) {
  Masked found;
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather: found.loads = true; break;
    case llvm::Intrinsic::masked_expandload: found.loads = found.packs = true; break;
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter: break;
    case llvm::Intrinsic::masked_compressstore: found.packs = true; break;
    default: return std::nullopt;
  }
  const unsigned last = call.arg_size() - 1;
  found.pointer = call.getArgOperand(found.loads ? 0 : 1);
  found.mask = call.getArgOperand(found.loads ? last - 1 : last);
  found.value = call.getArgOperand(found.loads ? last : 0);
  found.type = dyn_cast<llvm::FixedVectorType>(found.value->getType());
  if (found.type == nullptr) return std::nullopt;
  // Lanes of parts of bytes are not where each by itself would be.
  const llvm::DataLayout& layout = call.getModule()->getDataLayout();
  llvm::Type* lane = found.type->getElementType();
  if (layout.getTypeSizeInBits(lane) != layout.getTypeAllocSizeInBits(lane)) return std::nullopt;
  return found;
}

class Lanes {
 public:
  Lanes(llvm::IntrinsicInst& call, const Masked& what)
      : call_(call), what_(what), result_(what.value), pointer_(what.pointer) {}

  void run() {
    for (unsigned lane = 0; lane < what_.type->getNumElements(); ++lane) access(lane);
    if (what_.loads) call_.replaceAllUsesWith(result_);
    call_.eraseFromParent();
  }

 private:
  void access(unsigned lane) {
    llvm::IRBuilder<> at(&call_);
    Value* is_on = at.CreateExtractElement(what_.mask, lane);
    if (auto* known = dyn_cast<llvm::ConstantInt>(is_on); known != nullptr && known->isZero()) return;
    llvm::BasicBlock* before = call_.getParent();
    llvm::Instruction* end = llvm::SplitBlockAndInsertIfThen(is_on, call_.getIterator(), false);
    llvm::IRBuilder<> inside(end);
    inside.SetCurrentDebugLocation(call_.getDebugLoc());
    Value* place = place_of(inside, lane);
    if (what_.loads) {
      Value* loaded = inside.CreateAlignedLoad(what_.type->getElementType(), place, llvm::Align(1));
      result_ = joined(result_, inside.CreateInsertElement(result_, loaded, lane), before, end);
    } else {
      inside.CreateAlignedStore(inside.CreateExtractElement(what_.value, lane), place, llvm::Align(1));
    }
    if (what_.packs) {
      pointer_ =
          joined(pointer_, inside.CreateConstInBoundsGEP1_32(what_.type->getElementType(), place, 1), before, end);
    }
  }

  Value* place_of(llvm::IRBuilder<>& at, unsigned lane) {
    if (pointer_->getType()->isVectorTy()) return at.CreateExtractElement(pointer_, lane);
    if (what_.packs) return pointer_;
    return at.CreateConstInBoundsGEP1_32(what_.type->getElementType(), pointer_, lane);
  }

  // What follows the lane: where it was off, as before.
  Value* joined(Value* off, Value* on, llvm::BasicBlock* before, llvm::Instruction* end) {
    llvm::PHINode* both = llvm::PHINode::Create(off->getType(), 2, "", call_.getParent()->begin());
    both->setDebugLoc(call_.getDebugLoc());
    both->addIncoming(off, before);
    both->addIncoming(on, end->getParent());
    return both;
  }

  llvm::IntrinsicInst& call_;
  const Masked& what_;
  Value* result_;
  Value* pointer_;
};

}  // namespace

bool has_lanes(llvm::IntrinsicInst& call) { return masked(call).has_value(); }

void split_lanes(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> all;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      if (auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction)) all.push_back(call);
    }
  }
  for (llvm::IntrinsicInst* call : all) {
    const auto what = masked(*call);
    if (!what) continue;
    if (!what->pointer->getType()->isVectorTy() && is_near(what->pointer)) continue;
    Lanes(*call, *what).run();
  }
}

}  // namespace farheap::passes
