// Watches accesses to global and shared memory. The compiler reports them (-fsanitize=thread), but
// to the functions below, not to its own run time: each access has to lie in its tensor, and has
// to be ordered by barriers with those of other threads to the same bytes.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <cstring>

#include "state.h"

namespace emulator {

namespace {

// How far accesses of one kind to one place are spread, since the last one that came after all.
enum Spread : unsigned short { THREAD, WARP, BLOCK, BLOCKS };

struct Trace {
  unsigned time;  // of the last; before the launch (or the block, in shared memory): none
  unsigned place;
  unsigned short thread;
  Spread spread;
};

enum CellState : unsigned { WHOLE, SPLIT, COPIED };  // COPIED: a cp.async is under way

// What happened to four bytes, or to one byte of four that were not always accessed together.
struct Cell {
  Trace write, read, atomic;
  CellState state;
};

struct Region {
  unsigned char* begin;
  std::size_t size;
  const unsigned char* inside;
  Cell *words, *bytes;
  std::size_t mapped;
  bool shared;
};

Region global, shared;
unsigned char* image;
const unsigned char *constants_begin, *constants_end;

Cell* map_cells(std::size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room == MAP_FAILED ? nullptr : static_cast<Cell*>(room);
}

void watch(Region& region, unsigned char* begin, std::size_t size, const unsigned char* inside) {
  region = {begin, size, inside, nullptr, nullptr, 0, inside == nullptr};
  if (!launch->checked) return;
  std::size_t words = size / 4 + 1;
  region.mapped = 5 * words * sizeof(Cell);
  region.words = map_cells(region.mapped);
  if (!region.words) launch->checked = 0;  // no room: the caller sees that it was not checked
  region.bytes = region.words + words;
}

bool same_warp(const Trace& trace) { return trace.thread / 32 == current->number / 32; }

// Whether an access happened in this launch (in shared memory: this block), not ordered before
// what the current thread does now.
bool unordered(const Trace& trace, bool in_shared) {
  if (trace.time < (in_shared ? clock_.block : 2)) return false;
  if (trace.spread == BLOCKS || trace.time < clock_.block) return true;
  if (trace.time < clock_.barrier) return false;
  if (trace.spread == BLOCK || !same_warp(trace))
    return trace.spread != THREAD || trace.thread != current->number;
  if (trace.time < current_warp->synchronised) return false;
  return trace.spread == WARP || trace.thread != current->number;
}

Trace trace_of(unsigned place, Spread spread) {
  return {clock_.now, place, static_cast<unsigned short>(current->number), spread};
}

// One more access of a kind that does not conflict with itself.
void join(Trace& trace, unsigned place, bool in_shared) {
  if (!unordered(trace, in_shared))
    trace = trace_of(place, THREAD);
  else if (trace.spread == BLOCKS || trace.time < clock_.block)
    trace.spread = BLOCKS;  // what is kept of it is another block's, so nothing here is ordered
  else
    trace = trace_of(place, trace.spread == BLOCK || !same_warp(trace) ? BLOCK : WARP);
}

struct Conflict {
  Problem problem;
  Trace other;
};

// Records an access to a cell; whether it conflicts with an earlier one.
bool record(Cell& cell, Access kind, unsigned place, bool in_shared, Conflict& conflict) {
  if (cell.state == COPIED && cell.write.time < clock_.block)
    cell.state = WHOLE;  // copied to by a block that has ended
  bool found = true;
  if (cell.state == COPIED)
    conflict = {Problem::unfinished_copy, cell.write};
  else if (unordered(cell.write, in_shared))
    conflict = {kind == Access::read    ? Problem::write_read
                : kind == Access::write ? Problem::write_write
                                        : Problem::atomic_plain,
                cell.write};
  else if (kind != Access::atomic && unordered(cell.atomic, in_shared))
    conflict = {Problem::atomic_plain, cell.atomic};
  else if (kind != Access::read && unordered(cell.read, in_shared))
    conflict = {Problem::read_write, cell.read};
  else
    found = false;
  if (kind == Access::read) {
    join(cell.read, place, in_shared);
  } else if (kind == Access::atomic) {
    join(cell.atomic, place, in_shared);
  } else {  // what is ordered after this is ordered after all before
    cell.write = trace_of(place, THREAD);
    cell.read.time = cell.atomic.time = 0;
  }
  return found;
}

// Calls `visit` for the cells of these bytes.
template <class Visit>
void each_cell(Region& region, std::size_t offset, std::size_t size, Visit visit) {
  for (std::size_t at = offset, end = offset + size; at < end;) {
    std::size_t word = at / 4, next = 4 * word + 4;
    Cell& whole = region.words[word];
    if (whole.state != SPLIT) {
      if (at == 4 * word && next <= end) {
        visit(whole);
        at = next;
        continue;
      }
      for (std::size_t byte = 4 * word; byte < next; ++byte) region.bytes[byte] = whole;
      whole.state = SPLIT;
    }
    for (; at < next && at < end; ++at) visit(region.bytes[at]);
  }
}

void report_at(Finding found, const Region& region, const unsigned char* address, unsigned size) {
  found.shared = region.shared;
  found.offset = address - region.begin;
  found.size = size;
  report(found);
}

bool within(const Region& region, const unsigned char* address) {
  return address >= region.begin && address < region.begin + region.size;
}

// Whether the bytes may be accessed like this; reports it if not.
bool allowed(const Region& region, const unsigned char* address, unsigned size, Access kind,
             void* place) {
  std::size_t offset = address - region.begin;
  unsigned char all = READABLE | WRITABLE;
  if (region.shared || offset + size > region.size)
    all = offset + size <= launch->shared_size && region.shared ? all : 0;
  else
    for (unsigned i = 0; i < size; ++i) all &= region.inside[offset + i];
  unsigned char needed = kind == Access::read ? READABLE : WRITABLE;
  if (all & needed) return true;
  Problem problem = all & READABLE ? Problem::read_only : Problem::out_of_bounds;
  report_at(finding(problem, place), region, address, size);
  return false;
}

Region* region_of(const unsigned char* address) {
  if (within(global, address)) return &global;
  return within(shared, address) ? &shared : nullptr;
}

void observe(Region& region, const unsigned char* address, unsigned size, Access kind,
             void* place) {
  unsigned at = offset_of(place);
  Conflict conflict;
  bool found = false;
  each_cell(region, address - region.begin, size, [&](Cell& cell) {
    Conflict next;
    if (record(cell, kind, at, region.shared, next) && !found) {
      conflict = next;
      found = true;
    }
  });
  if (!found) return;
  Finding race = finding(conflict.problem, place);
  race.other_thread = conflict.other.thread;
  race.other_block = block_at(conflict.other.time);
  race.other_place = conflict.other.place;
  report_at(race, region, address, size);
}

// Where this library lies, and its constants: all that kernels may touch beside tensors.
int find_image(dl_phdr_info* info, std::size_t, void*) {
  const auto* here = reinterpret_cast<const unsigned char*>(&launch);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    auto* begin = reinterpret_cast<unsigned char*>(info->dlpi_addr + part.p_vaddr);
    if (part.p_type != PT_LOAD || here < begin || here >= begin + part.p_memsz) continue;
    image = reinterpret_cast<unsigned char*>(info->dlpi_addr);
    constants_begin = image;
    constants_end = begin;  // what is writable comes last
    return 1;
  }
  return 0;
}

bool harmless(const unsigned char* address, Access kind) {
  if (on_a_stack(address)) return true;
  const auto* variables = reinterpret_cast<const unsigned char*>(&indices);
  bool variable = address >= variables && address < variables + sizeof indices;
  return kind == Access::read &&
         (variable || (address >= constants_begin && address < constants_end));
}

// The copy that was asked for, at last.
void finish(const Copy& copy) {
  Region* to = launch->checked ? region_of(copy.to) : nullptr;
  if (to) {
    each_cell(*to, copy.to - to->begin, copy.size, [](Cell& cell) { cell.state = WHOLE; });
    if (copy.valid) observe(*region_of(copy.from), copy.from, copy.size, Access::read, copy.place);
    observe(*to, copy.to, copy.size, Access::write, copy.place);
  }
  if (copy.valid)
    std::memcpy(copy.to, copy.from, copy.size);
  else
    std::memset(copy.to, 0, copy.size);
}

}  // namespace

unsigned offset_of(void* place) {
  return place ? unsigned(static_cast<unsigned char*>(place) - image) : 0;
}

Finding finding(Problem problem, void* place) {
  Finding found = {};
  found.problem = problem;
  found.thread = found.other_thread = current->number;
  found.block = found.other_block = indices.block.x;
  found.place = offset_of(place);
  return found;
}

void report(Finding found) {
  for (unsigned i = 0; i < launch->number_of_findings; ++i) {
    const Finding& known = launch->findings[i];
    if (known.problem == found.problem && known.place == found.place &&
        known.other_place == found.other_place && known.line == found.line)
      return;
  }
  if (launch->number_of_findings < launch->most_findings)
    launch->findings[launch->number_of_findings++] = found;
}

void start_observing() {
  dl_iterate_phdr(find_image, nullptr);
  watch(global, launch->arena, launch->arena_size, launch->inside);
  watch(shared, launch->shared, launch->shared_room, nullptr);
}

void stop_observing() {
  for (Region* region : {&global, &shared})
    if (region->words) munmap(region->words, region->mapped);
}

bool access(const void* pointer, unsigned size, unsigned alignment, Access kind, void* place) {
  if (!launch->checked || !current) return true;
  const auto* address = static_cast<const unsigned char*>(pointer);
  Region* region = region_of(address);
  if (!region) {
    if (harmless(address, kind)) return true;
    Finding found = finding(Problem::elsewhere, place);
    found.offset = address - launch->arena;
    found.size = size;
    report(found);
    stop();  // the access might end the process
  }
  if (reinterpret_cast<std::uintptr_t>(address) % alignment)
    report_at(finding(Problem::misaligned, place), *region, address, size);
  if (!allowed(*region, address, size, kind, place)) return false;
  observe(*region, address, size, kind, place);
  return true;
}

void require_shared(const void* pointer, unsigned alignment, void* place) {
  const auto* address = static_cast<const unsigned char*>(pointer);
  if (!within(shared, address)) {
    report(finding(Problem::not_shared, place));
    stop();
  }
  if (launch->checked && reinterpret_cast<std::uintptr_t>(address) % alignment)
    report_at(finding(Problem::misaligned, place), shared, address, alignment);
}

void copy_async(void* to, const void* from, unsigned size, bool valid, void* place) {
  require_shared(to, size, place);
  if (!access(to, size, size, Access::write, place)) return;
  if (valid && !access(from, size, size, Access::read, place)) return;
  if (launch->checked)
    each_cell(shared, static_cast<unsigned char*>(to) - shared.begin, size,
              [](Cell& cell) { cell.state = COPIED; });
  std::memset(to, 0xff, size);
  current->copies.push_back({static_cast<unsigned char*>(to),
                             static_cast<const unsigned char*>(from), size, current->committed,
                             valid, place});
}

void commit_copies() { ++current->committed; }

void wait_copies(unsigned pending) {
  std::vector<Copy>& copies = current->copies;
  std::size_t done = 0;
  while (done < copies.size() && copies[done].group + pending < current->committed)
    finish(copies[done++]);
  copies.erase(copies.begin(), copies.begin() + done);
}

void trap(void* place) {
  report(finding(Problem::trap, place));
  stop();
}

}  // namespace emulator

// What the compiler calls.
using emulator::Access;
#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define HERE __builtin_return_address(0)

#define ACCESSES(N)                                                                            \
  HIDDEN void __tsan_read##N(void* p) { emulator::access(p, N, N, Access::read, HERE); }       \
  HIDDEN void __tsan_write##N(void* p) { emulator::access(p, N, N, Access::write, HERE); }     \
  HIDDEN void __tsan_unaligned_read##N(void* p) {                                              \
    emulator::access(p, N, N, Access::read, HERE);                                             \
  }                                                                                            \
  HIDDEN void __tsan_unaligned_write##N(void* p) {                                             \
    emulator::access(p, N, N, Access::write, HERE);                                            \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}
HIDDEN void __tsan_read_range(void* p, unsigned long size) {
  emulator::access(p, size, 1, Access::read, HERE);
}
HIDDEN void __tsan_write_range(void* p, unsigned long size) {
  emulator::access(p, size, 1, Access::write, HERE);
}
HIDDEN void* __tsan_memcpy(void* to, const void* from, unsigned long size) {
  emulator::access(from, size, 1, Access::read, HERE);
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memcpy(to, from, size);
}
HIDDEN void* __tsan_memmove(void* to, const void* from, unsigned long size) {
  emulator::access(from, size, 1, Access::read, HERE);
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memmove(to, from, size);
}
HIDDEN void* __tsan_memset(void* to, int value, unsigned long size) {
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memset(to, value, size);
}

// -fsanitize=alignment: a pointer to a type that needs more (a float4, say).
struct TypeMismatch {
  const char* file;
  unsigned line, column;
  const void* type;
  unsigned char log_alignment, kind;
};
HIDDEN void __ubsan_handle_type_mismatch_v1(TypeMismatch* where, void* pointer) {
  if (!emulator::current || !emulator::launch->checked) return;
  const auto* address = static_cast<const unsigned char*>(pointer);
  emulator::Region* region = emulator::region_of(address);
  if (region)
    emulator::report_at(emulator::finding(emulator::Problem::misaligned, HERE), *region, address,
                        1u << where->log_alignment);
}

// -fsanitize=bounds: an index into an array of known size, which lies in registers.
HIDDEN void __ubsan_handle_out_of_bounds(void*, unsigned long index) {
  emulator::Finding found = emulator::finding(emulator::Problem::register_array, HERE);
  found.offset = long(index);
  emulator::report(found);
  emulator::stop();
}

// Arithmetic whose result C++ leaves undefined: the machine's is taken, if there is one.
static void undefined(void* place, bool traps) {
  if (!emulator::current) return;
  emulator::report(emulator::finding(emulator::Problem::arithmetic, place));
  if (traps) emulator::stop();
}
#define UNDEFINED(NAME, TRAPS, ...) \
  HIDDEN void __ubsan_handle_##NAME(__VA_ARGS__) { undefined(HERE, TRAPS); }
UNDEFINED(add_overflow, false, void*, void*, void*)
UNDEFINED(sub_overflow, false, void*, void*, void*)
UNDEFINED(mul_overflow, false, void*, void*, void*)
UNDEFINED(divrem_overflow, true, void*, void*, void*)
UNDEFINED(shift_out_of_bounds, false, void*, void*, void*)
UNDEFINED(negate_overflow, false, void*, void*)
UNDEFINED(float_cast_overflow, false, void*, void*)
