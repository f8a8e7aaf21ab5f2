// Fibers: from the scheduler's stack to a thread's and back.
#pragma once
#include "state.h"
#if !defined(__x86_64__) || defined(EMULATOR_UCONTEXT)
#include <ucontext.h>
#endif

namespace emulator {
namespace {

// A stack has room for a kernel's arrays and for calls of the C library. Only pages that are used
// cost memory; the odd size keeps stacks from falling into the same cache lines.
constexpr std::size_t STACK = (64 << 10) + 576;

// `prepare` makes a fiber start anew, `enter` runs it until it calls `leave`.
#if defined(__x86_64__) && !defined(EMULATOR_UCONTEXT)
void* scheduler_stack;

// Saves the registers that a call keeps on the stack, and goes on with another stack.
extern "C" __attribute__((visibility("hidden"))) void emulator_switch(void** from, void* to);
asm(R"(
.text
.hidden emulator_switch
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch, .-emulator_switch
)");

void prepare(Fiber& fiber, unsigned char* bottom, void (*start)()) {
  auto top = (reinterpret_cast<std::uintptr_t>(bottom) + STACK) & ~std::uintptr_t(15);
  auto** stack = reinterpret_cast<void**>(top);
  *--stack = nullptr;  // where a return address would lie: the stack is aligned as after a call
  *--stack = reinterpret_cast<void*>(start);
  for (int saved = 0; saved < 6; ++saved) *--stack = nullptr;
  fiber.stack_pointer = stack;
}
void enter(Fiber& fiber) { emulator_switch(&scheduler_stack, fiber.stack_pointer); }
void leave(Fiber& fiber) { emulator_switch(&fiber.stack_pointer, scheduler_stack); }
#else
std::vector<ucontext_t> contexts;
ucontext_t scheduler_context;

void prepare(Fiber& fiber, unsigned char* bottom, void (*start)()) {
  contexts.resize(launch->threads);
  ucontext_t& context = contexts[fiber.number];
  getcontext(&context);
  context.uc_stack.ss_sp = bottom + 64;
  context.uc_stack.ss_size = STACK - 64;
  makecontext(&context, start, 0);
}
void enter(Fiber& fiber) { swapcontext(&scheduler_context, &contexts[fiber.number]); }
void leave(Fiber& fiber) { swapcontext(&contexts[fiber.number], &scheduler_context); }
#endif

}  // namespace
}  // namespace emulator
