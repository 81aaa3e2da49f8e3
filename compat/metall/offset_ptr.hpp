// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/interprocess/detail/utilities.hpp>
#include <boost/interprocess/offset_ptr.hpp>

namespace metall {

template <class T>
using offset_ptr = boost::interprocess::offset_ptr<T>;
using boost::interprocess::ipcdetail::to_raw_pointer;

}  // namespace metall
