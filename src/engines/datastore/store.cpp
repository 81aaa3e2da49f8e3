// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// datastore: Google's Datastore (Firestore in the mode of Datastore), or its emulator. The entities are specified in
// docs/formats.md.
//
// Whatever got no answer is found out by reading back: add() and compare-and-swap are done once and only once.
#include "engines/datastore/blocks.hpp"
#include "engines/engine_table.hpp"
#include "engines/space/keeper.hpp"
#include "engines/space/server_store.hpp"

namespace farheap::engines {

store::StoreResult open_datastore(const std::string& place, const store::Parameters& parameters,
                                  const StoreOptions& options) {
  return open_server_store<datastore::Client, datastore::Space, datastore::Blocks>(place, parameters, options);
}

const store::Keeper kDatastoreKeeper = keeper_of<datastore::Client, datastore::Stores>();

}  // namespace farheap::engines
