// Runs launches: each thread of a block is a fiber, which runs until it has to wait for others.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "state.h"
#include "switch.h"
#include "trace.h"

namespace emulator {

Indices indices;
Launch* launch;
Fiber* current;
Warp* current_warp;
Clock clock_;

namespace {

constexpr std::size_t BELOW = 4 << 20;  // for a first thread that needs more than it has
constexpr std::uint64_t CANARY = 0x5eed5afe0ddba115;

struct Stacks {
  unsigned char* begin = nullptr;
  std::size_t size = 0;
};

Stacks stacks;
std::vector<Fiber> fibers;
std::vector<Warp> warps;
std::vector<unsigned> order, block_starts, block_order;
unsigned random_state;
bool stopped;
bool any_brought, any_taken;                 // of barriers: before it, and when it let them go
Earlier ordered;                             // before what any thread of the block does now
std::map<const void*, Earlier> synchronised; // by place: what atomic operations there follow

void add(Earlier& to, const Earlier& others) {
  for (const auto& [begin, own] : others) {
    unsigned& until = to[begin];
    until = std::max(until, own);
  }
}

unsigned random_below(unsigned bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state % bound;
}

void shuffle(std::vector<unsigned>& numbers) {
  for (unsigned i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random_below(i)]);
}

void arrange(std::vector<unsigned>& numbers, unsigned count) {
  numbers.resize(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (launch->order == REVERSE) std::reverse(numbers.begin(), numbers.end());
  if (launch->order == RANDOM) shuffle(numbers);
}

[[noreturn]] void run_thread() {
  launch->kernel(launch->arguments);
  current->state = State::done;
  leave(*current);
  __builtin_unreachable();
}

void resume(Fiber& fiber) {
  current = &fiber;
  current_warp = &warps[fiber.number / 32];
  indices.thread.x = fiber.number;
  enter(fiber);
  if (*fiber.canary != CANARY) {
    report(finding(Problem::stack_overflow, nullptr));
    stopped = true;
  }
  current = nullptr;
}

void report_waiting(Problem problem, const Fiber& one, const Fiber* other) {
  Finding found = {};
  found.problem = problem;
  found.block = found.other_block = indices.block.x;
  found.thread = one.number;
  found.line = one.line;
  if (other) {
    found.other_thread = other->number;
    found.other_line = other->state == State::done ? 0 : other->line;
  }
  report(found);
  stopped = true;
}

// Lets the threads of a warp go on that have all arrived; whether any did.
bool release_warp(unsigned warp) {
  unsigned first = warp * 32, alive = 0, waiting = 0;
  unsigned lanes = std::min<std::size_t>(32, fibers.size() - first);
  for (unsigned i = 0; i < lanes; ++i) {
    alive |= unsigned(fibers[first + i].state != State::done) << i;
    waiting |= unsigned(fibers[first + i].state == State::warp) << i;
  }
  bool released = false;
  for (unsigned i = 0; i < lanes; ++i) {
    const Fiber& one = fibers[first + i];
    if (!(waiting >> i & 1) || one.state != State::warp) continue;
    unsigned expected = one.mask & alive;
    if ((expected & waiting) != expected) continue;
    for (unsigned j = 0; j < lanes; ++j) {
      Fiber& other = fibers[first + j];
      if (!(expected >> j & 1)) continue;
      if (other.mask != one.mask || other.line != one.line) {
        report_waiting(Problem::divergent_warp, one, &other);
        return true;
      }
    }
    for (unsigned j = 0; j < lanes; ++j) {
      if (!(expected >> j & 1)) continue;
      Fiber& other = fibers[first + j];
      warps[warp].payloads[j] = other.brought;
      warps[warp].present[j] = expected;
      other.state = State::ready;
    }
    waiting &= ~expected;
    released = true;
  }
  return released;
}

// Lets the block go on if all have arrived at one barrier; else says why nobody can.
void release_block() {
  const Fiber *at_barrier = nullptr, *other = nullptr;
  for (const Fiber& fiber : fibers)
    if (fiber.state == State::block && !at_barrier) at_barrier = &fiber;
  for (const Fiber& fiber : fibers) {
    bool same = at_barrier && fiber.state == State::block && fiber.line == at_barrier->line;
    if (!same && fiber.state != State::done && !other) other = &fiber;
  }
  if (!at_barrier && !other) return;  // all have ended
  if (!at_barrier || (other && other->state == State::warp)) {
    // Others of its warp wait elsewhere or have left, or the block's barrier keeps them.
    const Fiber* missing = at_barrier;
    for (const Fiber& fiber : fibers)
      if (!missing && &fiber != other && fiber.number / 32 == other->number / 32) missing = &fiber;
    report_waiting(Problem::deadlock, *other, missing);
    return;
  }
  if (!other)
    for (const Fiber& fiber : fibers)
      if (fiber.state == State::done) other = &fiber;
  if (other) {
    report_waiting(Problem::divergent_barrier, *at_barrier, other);
    return;
  }
  for (Fiber& fiber : fibers) {
    fiber.state = State::ready;
    add(ordered, fiber.ordered);
  }
  any_taken = any_brought;
  any_brought = false;
  if (launch->traffic) end_requests();
  clock_.barrier = ++clock_.now;
}

bool all_done() {
  return std::all_of(fibers.begin(), fibers.end(),
                     [](const Fiber& fiber) { return fiber.state == State::done; });
}

void run_block(unsigned block) {
  indices.block.x = block;
  clock_.block = clock_.barrier = ++clock_.now;
  block_starts.push_back(clock_.now);
  block_order.push_back(block);
  ordered.clear();
  any_brought = any_taken = false;
  std::memset(launch->shared, 0xff, launch->shared_size);
  for (Fiber& fiber : fibers) {
    unsigned char* bottom = stacks.begin + BELOW + fiber.number * STACK;
    fiber.canary = reinterpret_cast<std::uint64_t*>(bottom);
    *fiber.canary = CANARY;
    fiber.state = State::ready;
    fiber.copies.clear();
    fiber.turns.clear();
    fiber.committed = fiber.products_committed = fiber.unfenced = 0;
    fiber.products.clear();
    fiber.sums_fenced = false;
    fiber.fenced = 0;
    fiber.seen.clear();
    fiber.ordered.clear();
    prepare(fiber, bottom, &run_thread);
  }
  for (Warp& warp : warps) warp = {};
  while (!stopped && !all_done()) {
    if (launch->order == RANDOM) shuffle(order);
    for (unsigned number : order) {
      if (fibers[number].state == State::ready) resume(fibers[number]);
      if (stopped) return;
    }
    bool released = false;
    for (unsigned warp = 0; warp < warps.size(); ++warp) released |= release_warp(warp);
    if (!released && !stopped) release_block();
  }
  if (launch->traffic) end_requests();
}

void run_launch() {
  unsigned threads = launch->threads;
  indices = {{0, 0, 0}, {0, 0, 0}, {threads, 1, 1}, {launch->blocks, 1, 1}};
  clock_ = {1, 1, 1};
  random_state = launch->seed * 2654435761u | 1;
  stopped = false;
  block_starts.clear();
  block_order.clear();
  synchronised.clear();
  fibers.assign(threads, {});
  for (unsigned i = 0; i < threads; ++i) fibers[i].number = i;
  warps.assign((threads + 31) / 32, {});
  if (launch->traffic) begin_trace(threads);
  std::vector<unsigned> blocks;
  arrange(blocks, launch->blocks);
  arrange(order, threads);
  for (unsigned block : blocks) {
    run_block(block);
    if (stopped) break;
  }
}

}  // namespace

void stop() {
  stopped = true;
  current->state = State::done;
  leave(*current);
  __builtin_unreachable();
}

bool on_a_stack(const unsigned char* address) {
  return address >= stacks.begin && address < stacks.begin + stacks.size;
}

unsigned block_at(unsigned time) {
  auto next = std::upper_bound(block_starts.begin(), block_starts.end(), time);
  return next == block_starts.begin() ? 0 : block_order[next - block_starts.begin() - 1];
}

void barrier(unsigned line) {
  current->line = line;
  current->state = State::block;
  leave(*current);
}

bool barrier_or(unsigned line, bool mine) {
  any_brought |= mine;
  barrier(line);
  return any_taken;
}

void fence() {
  current->fenced = clock_.barrier;
  add(current->ordered, current->seen);
}

const Fiber* unfenced_writer() {
  for (const Fiber& fiber : fibers)
    if (fiber.unfenced && fiber.unfenced < clock_.barrier) return &fiber;
  return nullptr;
}

void synchronise(const void* place) {
  Earlier& there = synchronised[place];
  add(current->seen, there);
  if (!current->fenced) return;
  add(there, ordered);
  add(there, current->ordered);
  add(there, {{clock_.block, current->fenced}});
}

bool ordered_before(unsigned time) {
  unsigned begin = *(std::upper_bound(block_starts.begin(), block_starts.end(), time) - 1);
  for (const Earlier* known : {&ordered, &current->ordered}) {
    auto found = known->find(begin);
    if (found != known->end() && time < found->second) return true;
  }
  return false;
}

void exchange(const Payload& mine, unsigned mask, unsigned line) {
  current->brought = mine;
  current->mask = mask;
  current->line = line;
  if (!(mask >> current->number % 32 & 1)) {
    report_waiting(Problem::divergent_warp, *current, nullptr);  // not one of those it waits for
    stop();
  }
  current->state = State::warp;
  leave(*current);
}

const Payload* taken(unsigned lane) {
  unsigned present = current_warp->present[current->number % 32];
  return lane < 32 && present >> lane & 1 ? &current_warp->payloads[lane] : nullptr;
}

extern "C" __attribute__((visibility("default"))) int emulator_run(Launch* asked) {
  launch = asked;
  launch->number_of_findings = 0;
  stacks.size = BELOW + STACK * launch->threads;
  void* room = mmap(nullptr, stacks.size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 1;
  stacks.begin = static_cast<unsigned char*>(room);
  start_observing();
  run_launch();
  stop_observing();
  munmap(room, stacks.size);
  return 0;
}

}  // namespace emulator
