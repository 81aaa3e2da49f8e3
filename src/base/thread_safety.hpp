// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These words tell clang's thread-safety analysis about locks (`./dev lint`; docs/locks.md). Other compilers see
// nothing.
//
// The words are clang's: a capability is what a lock gives to its holder. A member says which lock guards it, a
// function which locks its caller must hold, and clang refuses each access that does not.
#pragma once

#ifdef __clang__
#define FARHEAP_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define FARHEAP_THREAD_SAFETY(attribute)
#endif

// A type is a lock, or holds one as long as it lives.
#define FARHEAP_CAPABILITY(name) FARHEAP_THREAD_SAFETY(capability(name))
#define FARHEAP_SCOPED_CAPABILITY FARHEAP_THREAD_SAFETY(scoped_lockable)

// A variable is read and written only with the lock; the second says so of what a pointer points to.
#define FARHEAP_GUARDED_BY(lock) FARHEAP_THREAD_SAFETY(guarded_by(lock))
#define FARHEAP_PT_GUARDED_BY(lock) FARHEAP_THREAD_SAFETY(pt_guarded_by(lock))
// This lock is taken first.
#define FARHEAP_ACQUIRED_BEFORE(...) FARHEAP_THREAD_SAFETY(acquired_before(__VA_ARGS__))

// The caller of a function holds it before and afterwards.
#define FARHEAP_REQUIRES(...) FARHEAP_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define FARHEAP_REQUIRES_SHARED(...) FARHEAP_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
// The caller does not hold it.
#define FARHEAP_EXCLUDES(...) FARHEAP_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// It is held afterwards, or no longer.
#define FARHEAP_ACQUIRE(...) FARHEAP_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define FARHEAP_ACQUIRE_SHARED(...) FARHEAP_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define FARHEAP_TRY_ACQUIRE(...) FARHEAP_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define FARHEAP_TRY_ACQUIRE_SHARED(...) FARHEAP_THREAD_SAFETY(try_acquire_shared_capability(__VA_ARGS__))
#define FARHEAP_RELEASE(...) FARHEAP_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define FARHEAP_RELEASE_SHARED(...) FARHEAP_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
// It is held, which the analysis cannot know: by one who is named in a comment.
#define FARHEAP_ASSERT_CAPABILITY(...) FARHEAP_THREAD_SAFETY(assert_capability(__VA_ARGS__))
#define FARHEAP_ASSERT_SHARED_CAPABILITY(...) FARHEAP_THREAD_SAFETY(assert_shared_capability(__VA_ARGS__))
// It is not looked at. The reason stands beside it.
#define FARHEAP_NO_THREAD_SAFETY_ANALYSIS FARHEAP_THREAD_SAFETY(no_thread_safety_analysis)
