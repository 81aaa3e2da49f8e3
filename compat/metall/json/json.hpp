// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::json: JSON values in a datastore.
#pragma once

#include <metall/json/array.hpp>
#include <metall/json/key_value_pair.hpp>
#include <metall/json/object.hpp>
#include <metall/json/parse.hpp>
#include <metall/json/pretty_print.hpp>
#include <metall/json/serialize.hpp>
#include <metall/json/value.hpp>
#include <metall/json/value_from.hpp>
#include <metall/json/value_to.hpp>
