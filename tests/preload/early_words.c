// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that is initialised before any other and binds a catalogue of words, as libgpg-error does: the first
// malloc() of the process comes while the C library holds its lock of catalogues.
#include <libintl.h>

__attribute__((visibility("default"))) void early_words(void);
void early_words(void) {}

__attribute__((constructor)) static void bind_words(void) { bindtextdomain("early-words", "/usr/share/locale"); }
