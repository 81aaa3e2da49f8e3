# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Requires: PROGRAM, CASES. Both ways: what the program has is listed, what is listed it has.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[a-z0-9_]+" known "${known}")
foreach(case ${known})
  if(NOT case IN_LIST CASES)
    message(SEND_ERROR "no ctest entry runs ${case}")
  endif()
endforeach()
foreach(case ${CASES})
  if(NOT case IN_LIST known)
    message(SEND_ERROR "there is no case ${case}")
  endif()
endforeach()
